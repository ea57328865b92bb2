"""The verifier on records that are right, cut off, witnessed, or there only in part."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller import cli
from controller.audit.verify_record import main
from tests.support.audit.tools.by_page import ORIGIN, WITNESS, Json, Pen, Signer, closed
from tests.support.audit.verifying import told


@pytest.mark.parametrize(("size", "boots"), [(16384, 1), (65536, 1), (8192, 3), (4096, 2)])
def test_a_record_in_good_order_is_right(
    size: int, boots: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(size, rounds=7, boots=boots)
    found = told(capsys, pen.save(tmp_path), "--table-key", pen.table_key.vkey())
    assert (found["exit"], found["verdict"], found["wrong"]) == (0, "right", None)
    assert found["segments"] == len(pen.files)
    assert (found["last_seq"], found["boots"], found["origin"]) == (pen.seq, boots, ORIGIN)
    assert found["signed_through"] >= pen.seq - 2
    assert found["table_key_proven"]
    assert not found["remarks"]
    assert not found["not_checked"]


def test_a_key_that_only_the_record_names_is_said_to_be_no_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(closed().save(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "THE TABLE'S KEY IS NOT PROVEN" in out
    assert out.endswith("RIGHT\n")


def test_a_record_of_a_running_table_is_right_and_said_to_be_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen()
    pen.start()
    pen.play()
    found = told(capsys, pen.save(tmp_path))
    assert found["exit"] == 0
    assert any("does not end with closed" in words for words in found["remarks"])


def test_late_checkpoints_are_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pen = Pen()
    pen.start()
    pen.write("note", {"text": "signed too late"})
    pen.mono, pen.utc = pen.mono + 1_000_000_000, pen.utc + 1_000_000
    pen.close()
    found = told(capsys, pen.save(tmp_path))
    assert (found["exit"], len(found["remarks"])) == (0, 1)
    assert "more than a second" in next(iter(found["remarks"]))


def test_a_clock_record_lets_the_clock_be_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen()
    pen.start()
    was, pen.utc = pen.utc, pen.utc - 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


def test_the_clock_may_be_set_where_a_segment_begins_and_where_a_boot_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen(4096)
    pen.start()
    while pen.room(650):
        pen.write("note", {"text": ""})
    was, pen.utc = pen.utc, pen.utc + 3_000_000
    pen.write("clock", {"utc_was": was, "mono": pen.mono})
    assert pen.number == 2
    pen.close()
    pen.mono = 5  # the machine started anew
    pen.start()
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


def test_a_card_drawn_in_error_may_become_the_hole_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen()
    pen.start()
    pen.round = 1
    digest = pen.hole(card=30, kind="ErrorCardDrawn")
    pen.round = 2
    pen.decide({"type": "HoleDealt", "commitment": digest, "spare": True})
    pen.reveal(card=30)
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0


# --- a part of a record


def test_later_segments_alone_are_checked_from_their_snapshot_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192, rounds=6, boots=2)
    assert len(pen.files) > 4
    for first in range(2, len(pen.files) + 1):
        found = told(capsys, pen.save(tmp_path / str(first), first))
        assert (found["exit"], found["wrong"]) == (3, None)
        assert f"from segment {first}: what came before is not here" in found["not_checked"]
        assert found["last_seq"] == pen.seq
        begun = next(at for at, place in enumerate(pen.frames, 1) if place[0] == first)
        assert found["first_seq"] == begun


def test_later_segments_alone_are_held_against_their_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192)
    stranger = Signer(f"{ORIGIN}/table", "a stranger").vkey()
    found = told(capsys, pen.save(tmp_path, 2), "--table-key", stranger)
    assert (found["exit"], found["wrong"]["seq"]) == (1, found["first_seq"])
    assert found["wrong"]["what"] == "the table's key is not the one given"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: data.update(origin="holecard/a b/0011223344556677"), "the origin is not hol"),
        (lambda data: data.update(frontier=[]), "the snapshot's frontier does not fit its seq"),
        (lambda data: data.pop("certificate"), "the snapshot has not both opened and certificate"),
        (lambda data: data.pop("opened"), "the snapshot has not both opened and certificate"),
        (lambda data: data.update(chain="0" * 64), "the chain does not go on"),
    ],
)
def test_the_snapshot_that_all_begins_with_is_held_to_the_page(
    spoil: Callable[[Json], object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen()
    pen.start()
    pen.segment()
    pen.snapshots = spoil
    pen.snapshot()
    found = told(capsys, pen.save(tmp_path, 2))
    assert found["exit"] == 1
    assert words in found["wrong"]["what"]


def test_a_record_begins_with_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = Pen()
    pen.boot = "0" * 16
    pen.segment()
    pen.put(pen.line(pen.record("note", {"text": "before all"})))
    found = told(capsys, pen.save(tmp_path))
    assert found["wrong"]["what"] == "the first record of the segment is no snapshot"


# --- witnesses


def witnessed(pen: Pen, folder: Path, size: int | None = None) -> Path:
    path = folder / "seen.note"
    path.write_text(WITNESS.cosign(pen.note(size)), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", [0, 1, 9, None])
@pytest.mark.parametrize("kind", [1, 4])
def test_the_record_that_a_witness_saw_is_known_again(
    size: int | None, kind: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    seen = str(witnessed(pen, tmp_path, size))
    more = ("--checkpoint", seen, "--witness-key", WITNESS.vkey(kind))
    found = told(capsys, pen.save(tmp_path), *more)
    assert (found["exit"], found["held_by_witness_at"]) == (0, "2026-01-01 00:01:40.000000 UTC")


def test_a_record_that_was_cut_off_is_found_by_the_witness(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    more = ("--checkpoint", str(witnessed(pen, tmp_path)), "--witness-key", WITNESS.vkey())
    number, start, stop = pen.frames[-2]
    for number, start, stop in pen.frames[-2:]:
        pen.files[number][start:stop] = bytes(stop - start)
    assert told(capsys, pen.save(tmp_path))["exit"] == 0
    found = told(capsys, tmp_path, *more)
    assert found["exit"] == 1
    assert found["wrong"]["what"] == (
        f"cut off: the witness's checkpoint is of {pen.seq} records, {pen.seq - 2} are here"
    )
    assert found["held_by_witness_at"] is None


def test_a_record_that_was_written_anew_is_found_by_the_witness(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = str(witnessed(closed(), tmp_path))
    pen = Pen()
    pen.start()
    pen.write("note", {"text": "with the table's own key"})
    pen.play(4)
    pen.close()
    assert told(capsys, pen.save(tmp_path))["exit"] == 0
    found = told(capsys, tmp_path, "--checkpoint", seen, "--witness-key", WITNESS.vkey())
    assert found["exit"] == 1
    assert "records have another root: rewritten" in found["wrong"]["what"]


def test_a_witness_of_what_is_not_here_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192)
    more = ("--checkpoint", str(witnessed(pen, tmp_path, 3)), "--witness-key", WITNESS.vkey())
    found = told(capsys, pen.save(tmp_path, 2), *more)
    assert (found["exit"], found["held_by_witness_at"]) == (3, None)
    assert "a checkpoint is of records too far back" in found["not_checked"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda note: note[:-9] + "AAAAAAA=\n", "the signature of witness.example is false"),
        (lambda note: note.replace("witness.ex", "witless.ex"), "is not signed by witness.example"),
        (lambda note: note.replace("\n\n", "\n"), "is no signed note of 3 lines"),
        (lambda note: note.replace("— ", "- "), "a line of its signatures is none"),
        (lambda note: note.replace("\n2\n", "\n02\n"), "the size is no number"),
    ],
)
def test_a_witnessed_checkpoint_that_is_none_is_refused(
    spoil: Any, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    seen = witnessed(pen, tmp_path, 2)
    seen.write_text(spoil(seen.read_text("utf-8")), encoding="utf-8")
    more = ("--checkpoint", str(seen), "--witness-key", WITNESS.vkey())
    found = told(capsys, pen.save(tmp_path), *more)
    assert found["exit"] == 1
    assert words in found["wrong"]["what"]


def forged(pen: Pen, size: int, how: str) -> str:
    """What a witness was made to countersign, though no boot of this record has signed it."""
    note = pen.note(size, by=Signer(ORIGIN, "a boot that never was"))
    if how == "unsigned":
        note = note.rpartition("\n\n")[0] + "\n\n"
    elif how == "false":
        right, wrong = pen.note(size), pen.note(size - 1)
        note = right.rpartition("\n\n")[0] + "\n\n" + wrong.rpartition("\n\n")[2]
    return WITNESS.cosign(note)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("unsigned", "is not signed by a boot of the record"),
        ("false", f"the signature of {ORIGIN} is false"),
        ("other key", "is not signed by a boot of the record"),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_what_a_witness_signed_must_be_signed_by_the_table(
    how: str, words: str, beside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both verifiers: the witness's signature is right, and so is the root."""
    pen = closed()
    folder = pen.save(tmp_path / "record")
    note = tmp_path / "seen.note"
    given: tuple[str, ...] = ("--checkpoint", str(note), "--witness-key", WITNESS.vkey(4))
    if beside:
        given, note = (), folder / "cosigned" / "9.note"
        note.parent.mkdir()
    note.write_text(WITNESS.cosign(pen.note(9)), encoding="utf-8")
    assert told(capsys, folder, *given)["exit"] == 0
    note.write_text(forged(pen, 9, how), encoding="utf-8")
    found = told(capsys, folder, *given)
    assert found["exit"] == 1
    assert words in found["wrong"]["what"]
    assert cli.main(["audit", "verify", str(folder), "--no-replay", "--json", *given]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [one["what"] for one in findings if "table" in one["what"]] == [
        one["what"] for one in findings
    ]


def test_what_a_witness_saw_of_boots_that_are_not_here_is_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed(8192, boots=3)
    seen = tmp_path / "seen.note"
    first = Signer(ORIGIN, f"{1:016x}")
    seen.write_text(WITNESS.cosign(pen.note(9, by=first)), encoding="utf-8")
    more = ("--checkpoint", str(seen), "--witness-key", WITNESS.vkey(4))
    both = (pen.save(tmp_path / "all"), 0), (pen.save(tmp_path / "later", 3), 3)
    for folder, code in both:
        assert told(capsys, folder, *more)["exit"] == code
        assert cli.main(["audit", "verify", str(folder), "--no-replay", "--json", *more]) == code
        found = json.loads(capsys.readouterr().out)
        assert found["findings"] == []
        assert any("witness.example has seen" in one for one in found["unchecked"]) == (code == 3)


def test_notes_beside_the_record_are_held_against_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = closed()
    cosigned = tmp_path / "cosigned"
    cosigned.mkdir()
    for size in (5, 12):
        (cosigned / f"{size}.note").write_text(WITNESS.cosign(pen.note(size)), encoding="utf-8")
    assert told(capsys, pen.save(tmp_path))["exit"] == 0
    (cosigned / "7.note").write_text(WITNESS.cosign(pen.note(6)), encoding="utf-8")
    assert told(capsys, tmp_path)["wrong"]["what"] == "cosigned/7.note is of 6 records"
    (cosigned / "7.note").unlink()
    (cosigned / f"{pen.seq + 1}.note").write_text(pen.note(), encoding="utf-8")
    assert "cut off: cosigned/" in told(capsys, tmp_path)["wrong"]["what"]
