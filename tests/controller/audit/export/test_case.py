"""Sealed cases: what is in them, that they are always the same, and that others can check them."""

import base64
import errno
import json
import os
import re
import shutil
import zipfile
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.audit.errors import CannotWrite, NoRecord, RecordDamaged
from controller.audit.export import check_case, export_case
from controller.audit.export.case_folder import seal_of
from controller.audit.format.segments import segment_file
from controller.audit.proofs import decode_proof, verify_proof
from controller.audit.read.access_log import access_log_file, log_access
from controller.audit.read.lookup import NoMatch, Selection
from controller.audit.read.reader import read_segment, records, segments
from controller.audit.replay import decode_decision
from controller.audit.witness import store_notes
from controller.errors import UsageProblem
from controller.procedure.model.events import HoleDealt, HoleRevealed
from tests.support.audit.record.table import begun, failing, note
from tests.support.audit.tools.outside import (
    VERIFIER,
    WITNESS,
    bytes_of,
    end_after,
    files_in,
    flip,
    grow,
    of_round,
    origin_of,
    overwrite,
    play,
    played,
    root_of,
    table_key,
    unpack,
    verified_by_others,
    wanted,
)
from tests.support.audit.witnessing import cut, seen_by

# --- for others -------------------------------------------------------------------------------


def test_a_case_of_all_is_right_for_others(dealt: Path, tmp_path: Path) -> None:
    case = export_case(dealt, tmp_path / "case.zip", Selection())
    folder = unpack(case.out, tmp_path / "unpacked")
    code, told = verified_by_others(folder, "--table-key", str(table_key(dealt)))
    assert (code, told["wrong"], told["not_checked"]) == (0, None, {})
    assert told["last_seq"] == case.manifest.records[1] == len(bytes_of(dealt))
    assert told["origin"] == case.manifest.origin == origin_of(dealt)
    assert not [path for path in wanted(case) if path.startswith("proofs/")]
    assert check_case(folder).right


@pytest.mark.parametrize("pick", [Selection(1, 1), Selection(9, 12), Selection(24, 24)])
def test_a_case_of_rounds_is_right_for_others(pick: Selection, dealt: Path, tmp_path: Path) -> None:
    folder = unpack(export_case(dealt, tmp_path / "case.zip", pick).out, tmp_path / "unpacked")
    key = table_key(dealt)
    code, told = verified_by_others(folder, "--table-key", str(key))
    assert code in (0, 3), told
    assert told["wrong"] is None
    last = [one.seq for one in of_round(dealt, pick.last) if one.kind != "checkpoint"]
    assert told["signed_through"] >= last[-1]
    assert check_case(folder).right
    for turn in range(pick.first, pick.last + 1):
        found = verify_proof(
            "p", decode_proof("p", (folder / "proofs" / f"round-{turn:08d}.json").read_bytes()), key
        )
        whole_round = of_round(dealt, turn)
        if turn == 24 and whole_round[-1].kind == "checkpoint":
            whole_round.pop()  # the last of all: nothing is signed behind it
        assert list(found.records) == whole_round
    assert len(list((folder / "proofs").iterdir())) == pick.last - pick.first + 1


def test_an_altered_segment_is_found_by_others(dealt: Path, tmp_path: Path) -> None:
    case = export_case(dealt, tmp_path / "case", Selection())
    flip(case.out / "record" / "segments" / "00000001.seg", 5000)
    code, told = verified_by_others(case.out)
    assert (code, told["wrong"]["segment"]) == (1, "00000001.seg")
    assert check_case(case.out).wrong == ("record/segments/00000001.seg: was changed",)


def test_a_cut_off_record_is_found_by_others_through_its_witness(
    record: Path, tmp_path: Path
) -> None:
    made = seen_by(record, tmp_path / "archive")
    store_notes(record, [("a", made.note.encode())], WITNESS.cosigner)
    cut(record, max(one.number for one in segments(record)), 4)
    case = export_case(record, tmp_path / "case", Selection())
    assert f"record/cosigned/{made.size}.note" in wanted(case)
    code, told = verified_by_others(case.out)
    assert code == 1
    assert told["wrong"]["what"].startswith("cut off: ")


# --- what is in it ----------------------------------------------------------------------------


def test_whole_segments_as_they_lie_there(record: Path, tmp_path: Path) -> None:
    case = export_case(record, tmp_path / "case", Selection(4, 5))
    first, last = case.manifest.segments
    found = [one.number for one in segments(record) if {4, 5} & rounds_in(one)]
    assert (first, last) == (found[0], found[-1])
    for number in range(first, last + 1):
        there = case.out / "record" / "segments" / f"{number:08d}.seg"
        assert there.read_bytes() == segment_file(record, number).read_bytes()
    assert case.manifest.remarks == ()


def rounds_in(segment: Any) -> set[int]:
    return {json.loads(frame.data)["round"] for frame in segment.frames}


def test_the_segments_up_to_the_checkpoint_over_the_last_record_are_in_it(
    tmp_path: Path, place: Path
) -> None:
    with closing(begun(place, size=8192)) as log:
        play(log, 1, 1)
        while len(list(segments(place))) < 2:
            log.write([note("of round 2", 90, round=2)])
        while len(list(segments(place))) < 3:
            log.write([note("of round 3", 90, round=3)])
    assert max(one.seq for one in of_round(place, 2)) <= list(segments(place))[1].after.seq
    assert export_case(place, tmp_path / "case", Selection(2, 2)).manifest.segments == (1, 3)


def test_notes_keys_and_hashes_are_in_it(record: Path, tmp_path: Path) -> None:
    grow(record)
    case = export_case(record, tmp_path / "case", Selection())
    said = case.manifest
    assert said.table_key == str(table_key(record))
    boots = {one.boot for _, one in records(record)}
    assert {one.boot for one in said.boots} == boots
    assert {one.conf for one in said.boots} == {"c0" * 32}
    assert {f"certificates/{boot}.note" for boot in boots} <= set(wanted(case))
    notes = {path for path in wanted(case) if path.startswith("checkpoints/")}
    assert len(notes) == len(list(segments(record)))
    for path in notes:
        origin, size, root, *_ = (case.out / path).read_text("utf-8").split("\n")
        assert (origin, path) == (said.origin, f"checkpoints/{size}.note")
        assert base64.b64decode(root) == root_of(record, int(size))
    for name in ("FORMAT.md", VERIFIER):
        theirs = (case.out / name).read_bytes()
        assert theirs == files("controller.audit").joinpath(name).read_bytes()


def test_proofs_lead_to_what_a_witness_saw(record: Path, tmp_path: Path) -> None:
    made = seen_by(record, tmp_path / "archive")
    store_notes(record, [("a", made.note.encode())], WITNESS.cosigner)
    grow(record)
    case = export_case(record, tmp_path / "case", Selection(2, 2))
    against = case.manifest.proofs
    assert against is not None
    assert (against.size, against.root) == (made.size, made.root.hex())
    assert (case.out / against.note).read_text("utf-8") == made.note
    assert (case.out / "witnessed" / f"{made.size}.note").read_text("utf-8") == made.note
    proof = decode_proof("p", (case.out / "proofs" / "round-00000002.json").read_bytes())
    assert verify_proof("p", proof, table_key(record), WITNESS.cosigner).witnessed_size == made.size


def test_a_note_that_is_not_of_the_record_is_remarked(record: Path, tmp_path: Path) -> None:
    made = seen_by(record, tmp_path / "archive")
    (record / "cosigned").mkdir()
    (record / "cosigned" / f"{made.size}.note").write_text(
        made.note.replace(made.note.split("\n")[2], "A" * 43 + "="), "utf-8"
    )
    case = export_case(record, tmp_path / "case", Selection(2, 2))
    (remark,) = case.manifest.remarks
    assert f"cosigned/{made.size}.note: this record has no such checkpoint" in remark
    assert f"witnessed/{made.size}.note" in wanted(case)


def test_a_day_is_exported(record: Path, tmp_path: Path) -> None:
    (day,) = {one.day for _, one in records(record)}
    case = export_case(record, tmp_path / "case", Selection(day=day))
    assert (case.manifest.exported.what, case.manifest.exported.day) == ("day", day)
    assert len([path for path in wanted(case) if path.startswith("proofs/")]) == len(
        {one.round for _, one in records(record)} - {0}
    )


@pytest.mark.parametrize("pick", [Selection(99, 120), Selection(day="1999-01-01")])
def test_what_is_not_there_is_not_exported(pick: Selection, record: Path, tmp_path: Path) -> None:
    with pytest.raises(NoMatch, match=f"has nothing of {pick}"):
        export_case(record, tmp_path / "case", pick)
    assert sorted(os.listdir(tmp_path)) == ["mega-1", "mega-1.looks.jsonl"]


def test_what_was_set_aside_is_in_it(tmp_path: Path) -> None:
    record = played(tmp_path / "record", 1)
    segment = next(segments(record))
    overwrite(segment.file, segment.end, b"\x80\0\0\0half")
    grow(record)
    (tail,) = (record / "tails").iterdir()
    case = export_case(record, tmp_path / "case", Selection())
    assert (case.out / "record" / "tails" / tail.name).read_bytes() == tail.read_bytes()
    code, told = verified_by_others(case.out)
    assert (code, told["wrong"]) == (0, None)


# --- nothing that lies face down --------------------------------------------------------------


def test_no_card_that_lies_face_down_is_in_it(dealt: Path, tmp_path: Path) -> None:
    """A record that ends with a hole card on the felt; how that would open is known to us."""
    record = shutil.copytree(dealt, tmp_path / "par")
    shown = [one for _, one in records(record) if one.kind == "decision"]
    made = [(one, decode_decision(one).event) for one in shown]
    dealt_at = max(at for at, (_, event) in enumerate(made) if isinstance(event, HoleDealt))
    opening = next(event.opening for _, event in made[dealt_at:] if isinstance(event, HoleRevealed))
    end_after(record, made[dealt_at + 1][0].seq)
    turn = made[dealt_at][0].round
    for pick in (Selection(), Selection(turn, turn)):
        every = b"".join(
            files_in(export_case(record, tmp_path / f"case-{pick.first}", pick).out).values()
        )
        assert b'"HoleDealt"' in every
        raw = bytes.fromhex(opening)
        for form in (raw, opening.encode(), base64.b64encode(raw).rstrip(b"="), raw[:32]):
            assert form not in every
            assert form[:24] not in every


# --- always the same --------------------------------------------------------------------------


@pytest.mark.parametrize("pick", [Selection(), Selection(3, 4)])
def test_the_same_record_gives_the_same_bytes(
    pick: Selection, record: Path, tmp_path: Path
) -> None:
    cases = []
    for name in ("one", "two"):
        case = export_case(record, tmp_path / f"{name}.zip", pick, who="Eve", reason="why")
        cases.append((case.out.read_bytes(), case.seal))
        os.utime(segment_file(record, 1), (1, 1))
    assert cases[0] == cases[1]
    folder = export_case(record, tmp_path / "folder", pick, who="Eve", reason="why")
    assert folder.seal == cases[0][1] == seal_of((folder.out / "manifest.json").read_bytes())
    assert files_in(folder.out) == files_in(unpack(tmp_path / "one.zip", tmp_path / "unpacked"))


def test_a_zip_tells_nothing_of_who_made_it(record: Path, tmp_path: Path) -> None:
    case = export_case(record, tmp_path / "case.zip", Selection(1, 1))
    with zipfile.ZipFile(case.out) as packed:
        names = packed.namelist()
        assert names == sorted(names)
        assert {one.date_time for one in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert packed.testzip() is None


def test_the_names_in_it_are_those_of_the_page(record: Path, tmp_path: Path) -> None:
    store_notes(
        record, [("a", seen_by(record, tmp_path / "archive").note.encode())], WITNESS.cosigner
    )
    case = export_case(record, tmp_path / "case", Selection(1, 2))
    page = (case.out / "FORMAT.md").read_text("utf-8")
    for path in wanted(case):
        shape = re.sub(r"/[0-9]+\.note", "/SIZE.note", path)
        shape = re.sub(r"certificates/.*", "certificates/BOOT.note", shape)
        shape = re.sub(r"round-[0-9]+", "round-NUMBER", shape)
        shape = re.sub(r"(record/[a-z]+/).*", r"\1", shape)
        assert f"`{shape}`" in page


# --- a record in use --------------------------------------------------------------------------


def test_a_record_that_is_written_is_exported_and_goes_on(tmp_path: Path, place: Path) -> None:
    with closing(begun(place)) as log:
        play(log, 1, 4)
        log.write([note("of round 5, not signed", round=5)])
        case = export_case(place, tmp_path / "case", Selection(4, 5))
        assert case.manifest.remarks == (
            f"records from {log.where.seq} on were not signed yet: no proofs",
        )
        assert [path for path in wanted(case) if path.startswith("proofs/")] == [
            "proofs/round-00000004.json"
        ]
        play(log, 5, 5)
    code, told = verified_by_others(case.out)
    assert code in (0, 3)
    assert told["wrong"] is None


def test_what_is_in_the_making_is_left_out(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a write is there when the last segment is read, all of it when it is read again; and
    half of the next one."""
    last = list(segments(record))[-1]
    right = last.buffer
    half, whole_ = last.frames[-1].offset + 70, last.end
    reads = iter([right[:half].ljust(len(right), b"\0"), right[:whole_] + b"\x90half"])

    def torn(place: Path, number: int, after: Any = None) -> Any:
        if number == last.number and place == record:
            last.file.write_bytes(next(reads, b"").ljust(len(right), b"\0"))
        return read_segment(place, number, after)

    monkeypatch.setattr("controller.audit.export.case.read_segment", torn)
    case = export_case(record, tmp_path / "case", Selection())
    assert (case.out / "record" / "segments" / last.file.name).read_bytes() == right
    assert case.manifest.remarks == ()
    assert next(reads, None) is None


def test_what_stays_behind_the_last_record_is_exported_as_it_lies(
    record: Path, tmp_path: Path
) -> None:
    last = list(segments(record))[-1]
    overwrite(last.file, last.end, b"\x80\0\0\0half of a write")
    case = export_case(record, tmp_path / "case", Selection())
    assert (
        case.out / "record" / "segments" / last.file.name
    ).read_bytes() == last.file.read_bytes()
    (remark,) = case.manifest.remarks
    assert f"bytes after seq {last.after.seq}" in remark


def test_a_damaged_record_is_exported_as_evidence(record: Path, tmp_path: Path) -> None:
    flip(segment_file(record, 2), 3000)
    with pytest.raises(RecordDamaged):
        export_case(record, tmp_path / "rounds", Selection(8, 8))
    assert not (tmp_path / "rounds").exists()
    case = export_case(record, tmp_path / "case", Selection())
    assert files_in(case.out / "record" / "segments") == {
        name: data for name, data in files_in(record / "segments").items() if name != "spare.seg"
    }
    assert case.manifest.remarks[0].startswith("segment 2: ")
    assert verified_by_others(case.out)[0] == 1


# --- looks, and what goes wrong ---------------------------------------------------------------


def test_that_somebody_exported_stands_beside_the_record(record: Path, tmp_path: Path) -> None:
    case = export_case(
        record, tmp_path / "case.zip", Selection(2, 3), who="Eve", reason="complaint 7"
    )
    asked, made = map(json.loads, access_log_file(record).read_text("utf-8").splitlines())
    assert (asked["what"], made["what"]) == ("export", "exported")
    for one in (asked, made):
        assert (one["who"], one["of"], one["reason"], one["out"]) == (
            "Eve",
            "rounds 2 to 3",
            "complaint 7",
            "case.zip",
        )
    assert "seal" not in asked
    assert made["seal"] == case.seal
    assert (case.manifest.by, case.manifest.reason) == ("Eve", "complaint 7")


def test_where_a_look_cannot_be_written_nothing_is_exported(record: Path, tmp_path: Path) -> None:
    access_log_file(record).mkdir()
    with pytest.raises(CannotWrite, match="nobody looks without it"):
        export_case(record, tmp_path / "case", Selection())
    assert sorted(os.listdir(tmp_path)) == ["mega-1", "mega-1.looks.jsonl"]


def test_where_the_second_look_cannot_be_written_nothing_is_exported(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(record: Path, what: str, of: str, **more: str) -> Any:
        if what == "exported":
            raise CannotWrite(record, "no", "no")
        return log_access(record, what, of, **more)

    monkeypatch.setattr("controller.audit.export.case.log_access", once)
    with pytest.raises(CannotWrite):
        export_case(record, tmp_path / "case.zip", Selection())
    assert sorted(os.listdir(tmp_path)) == ["mega-1", "mega-1.looks.jsonl"]


def test_nothing_is_ever_replaced(record: Path, tmp_path: Path) -> None:
    for name in ("case", "case.zip"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(UsageProblem, match="is there already"):
            export_case(record, tmp_path / name, Selection())
        assert (tmp_path / name).read_text() == "mine"
    assert not access_log_file(record).exists()


@pytest.mark.parametrize(
    ("out", "words"),
    [("mega-1/case", "in the record's own"), ("mega-1/segments/x.zip", "in the record's own"),
     ("none/case", "there is no directory")],
)  # fmt: skip
def test_a_place_that_will_not_do_is_refused(
    out: str, words: str, record: Path, tmp_path: Path
) -> None:
    before = files_in(record)
    with pytest.raises(UsageProblem, match=words):
        export_case(record, tmp_path / out, Selection())
    assert files_in(record) == before
    with pytest.raises(NoRecord):
        export_case(tmp_path / "nothing", tmp_path / "case", Selection())
    assert not access_log_file(tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["case", "case.zip"])
@pytest.mark.parametrize(
    "call", ["os.rename", "os.fsync", "shutil.copyfileobj", "Path.write_bytes"]
)
def test_a_disk_that_is_full_leaves_nothing(
    call: str, name: str, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if call == "shutil.copyfileobj" and name == "case":
        call = "os.rename"  # only a zip is copied together
    monkeypatch.setattr(f"controller.audit.export.case_folder.{call}", failing(errno.ENOSPC))
    monkeypatch.setattr(
        "controller.audit.export.case.log_access", lambda *_, **__: SimpleNamespace(who="x")
    )
    with pytest.raises(OSError, match="No space left"):
        export_case(record, tmp_path / name, Selection(1, 1))
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == ["mega-1"]
