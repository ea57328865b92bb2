"""Notes of retirements that were changed, moved or taken away, and more taken out than they say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from controller.audit.export.retire import InvalidRecord
from controller.audit.format.segments import numbers
from tests.support.audit.record.retiring import (
    DAYS,
    Aged,
    aged,
    by_others,
    made,
    old,
    report_of,
    retired,
    right,
    wrong,
)
from tests.support.audit.tools.cases import unpack

__all__ = ["made", "old"]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ('"two":\\["Ann","Bo"', '"two":["Ann","Cy"'),
        ('"case":"..', '"case":"00'),
        ('"root":"..', '"root":"00'),
        ('"utc":18', '"utc":17'),
        ('"days":\\["2027-01-15"', '"days":["2027-01-14"'),
        ('"hole":null', '"hole":{"round":1,"commitment":"%s","cursor":null}' % ("0" * 64)),
        ('"segments":\\[1', '"segments":[2'),
        ("holecard retired 1", "holecard retired 2"),
        ('{"segments"', '{"more":1,"segments"'),
        ('{"segments"', '{"segments'),
        ("/table ", "/tabel "),
    ],
)
def test_a_changed_note_is_found(was: str, becomes: str, old: Aged, tmp_path: Path) -> None:
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    (file,) = (old.record / "retired").iterdir()
    text, count = re.subn(was, becomes, file.read_text("utf-8"), count=1)
    assert count == 1
    file.write_text(text, encoding="utf-8")
    assert "retired/" in wrong(old.record)


def test_any_flipped_bit_of_a_note_is_found(old: Aged, tmp_path: Path) -> None:
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    (file,) = (old.record / "retired").iterdir()
    data = file.read_bytes()
    for at in range(0, len(data), 211):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        wrong(old.record)


def test_without_its_note_a_record_is_not_whole(old: Aged, tmp_path: Path) -> None:
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    (file,) = (old.record / "retired").iterdir()
    file.unlink()
    report = report_of(old.record)
    assert report.code == 3
    assert f"what stands before segment {numbers(old.record)[0]} is not here" in report.unchecked
    assert by_others(old.record)["exit"] == 3
    with pytest.raises(InvalidRecord, match="is not here"):
        retired(old.record, DAYS[3], tmp_path / "2.zip")
    assert not (tmp_path / "2.zip").exists()


def test_the_note_of_another_retirement_does_not_do(old: Aged, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = aged(tmp_path / "other").record
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    retired(other, DAYS[2], tmp_path / "other.zip")
    (file,), (its,) = (old.record / "retired").iterdir(), (other / "retired").iterdir()
    assert file.name == its.name
    shutil.copy(its, file)
    assert "retired/" in wrong(old.record)


def test_more_than_was_retired_is_not_taken_for_it(old: Aged, tmp_path: Path) -> None:
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    there = numbers(old.record)
    (old.record / "segments" / f"{there[0]:08d}.seg").unlink()
    report = report_of(old.record)
    assert report.code == 3
    assert f"what stands before segment {there[0] + 1} is not here" in report.unchecked
    assert by_others(old.record)["exit"] == 3
    (file,) = (old.record / "retired").iterdir()
    file.write_bytes(file.read_bytes().replace(b'"Bo"', b'"Al"'))
    assert "not what the table's key has signed" in wrong(old.record)


def test_a_note_shows_that_a_record_was_cut_off(old: Aged, tmp_path: Path) -> None:
    shutil.rmtree(old.record / "cosigned")
    retired(old.record, DAYS[2], tmp_path / "old.zip")
    case = unpack(tmp_path / "old.zip", tmp_path / "case")
    shutil.copytree(old.record / "retired", case / "record" / "retired")
    assert len(right(case / "record")) == 1
    (case / "record" / "segments" / f"{numbers(case / 'record')[-1]:08d}.seg").unlink()
    assert wrong(case / "record").startswith("cut off: ")
