"""Cases of records that are written or damaged, and what goes wrong while a case is made."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.audit.errors import CannotWrite, NoRecord, RecordDamaged
from controller.audit.export import export_case
from controller.audit.format.segments import segment_file
from controller.audit.read.access_log import access_log_file, log_access
from controller.audit.read.lookup import Selection
from controller.audit.read.reader import read_segment, segments
from controller.errors import UsageProblem
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.cases import record, verified_by_others, wanted
from tests.support.audit.tools.outside import files_in, play, whole

__all__ = ["record", "whole"]


# --- a record in use --------------------------------------------------------------------------


def test_a_record_that_is_written_is_exported_and_goes_on(tmp_path: Path) -> None:
    record = tmp_path / "record"
    log = begun(record)
    play(log, 1, 4)
    log.write([note("of round 5, not signed", round=5)])
    case = export_case(record, tmp_path / "case", Selection(4, 5))
    later = f"records from {log.where.seq} on were not signed yet: no proofs"
    assert case.manifest.remarks == (later,)
    proofs = [path for path in wanted(case) if path.startswith("proofs/")]
    assert proofs == ["proofs/round-00000004.json"]
    play(log, 5, 5)
    log.close()
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
            data = next(reads, b"")
            last.file.write_bytes(data.ljust(len(right), b"\0"))
        return read_segment(place, number, after)

    monkeypatch.setattr("controller.audit.export.case.read_segment", torn)
    case = export_case(record, tmp_path / "case", Selection())
    there = case.out / "record" / "segments" / last.file.name
    assert there.read_bytes() == right
    assert case.manifest.remarks == ()
    assert next(reads, None) is None


def test_what_stays_behind_the_last_record_is_exported_as_it_lies(
    record: Path, tmp_path: Path
) -> None:
    last = list(segments(record))[-1]
    with last.file.open("r+b") as file:
        file.seek(last.end)
        file.write(b"\x80\0\0\0half of a write")
    case = export_case(record, tmp_path / "case", Selection())
    there = case.out / "record" / "segments" / last.file.name
    assert there.read_bytes() == last.file.read_bytes()
    (remark,) = case.manifest.remarks
    assert f"bytes after seq {last.after.seq}" in remark


def test_a_damaged_record_is_exported_as_evidence(record: Path, tmp_path: Path) -> None:
    file = segment_file(record, 2)
    data = bytearray(file.read_bytes())
    data[3000] ^= 1
    file.write_bytes(data)
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
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "shutil.copyfileobj" and name == "case":
        call = "os.rename"  # only a zip is copied together
    monkeypatch.setattr(f"controller.audit.export.case_folder.{call}", full)
    monkeypatch.setattr(
        "controller.audit.export.case.log_access", lambda *_, **__: SimpleNamespace(who="x")
    )
    with pytest.raises(OSError, match="No space left"):
        export_case(record, tmp_path / name, Selection(1, 1))
    monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == ["mega-1"]
