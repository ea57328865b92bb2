"""What somebody does to a record afterwards is found: without the keys by the record itself, with
all of them in hand by whoever has seen it before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.format.notes import NoteProblem, format_note, parse_note
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import segments
from controller.audit.verify import (
    INVALID,
    VALID,
    seen_by_witness,
    verify,
)
from tests.support.audit.record.forging import Original, forged, original, read
from tests.support.audit.record.tamperings import TAMPERINGS
from tests.support.audit.tools.outside import WITNESS, grow, played
from tests.support.audit.tools.signers import SECONDS
from tests.support.audit.verifying import read as read_independently
from tests.support.audit.verifying import seen


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return original(tmp_path_factory.mktemp("original"))


def independently(place: Path, note: bytes, folder: Path) -> int:
    """The exit code of the verifier that shares no code with ours."""
    file = folder / "seen.note"
    file.write_bytes(note)
    key = str(WITNESS.cosigner)
    return verify_record.main(
        [str(place), "--checkpoint", str(file), "--witness-key", key, "--json"]
    )


def test_the_original_is_right(first: Original, tmp_path: Path) -> None:
    witness = seen_by_witness(seen(first.place), WITNESS.cosigner)
    report = verify(first.place, witness=witness)
    assert (report.code, report.findings, report.unchecked) == (VALID, (), ())
    assert (report.witnessed, report.witnessed_at) == (report.last - 1, SECONDS)
    assert (report.again, report.opened) == (report.kinds["decision"], 3)
    same = forged(first.place, tmp_path / "same", lambda records: None, first.keys)
    assert read(same) == read(first.place)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_who_has_the_keys_is_found_out_by_a_witness(
    name: str, first: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, tells = TAMPERINGS[name]
    place = forged(first.place, tmp_path / "forged", change, first.keys)
    alone = verify(place)
    assert (alone.code == INVALID) == tells, alone.findings
    witness = seen_by_witness(seen(first.place), WITNESS.cosigner)
    found = verify(place, witness=witness).findings
    assert any("other records" in one.what or "cut off" in one.what for one in found)
    assert independently(place, seen(first.place), tmp_path) == INVALID


@pytest.mark.parametrize("name", TAMPERINGS)
def test_who_has_no_keys_is_found_out_by_the_record_alone(
    name: str, first: Original, tmp_path: Path
) -> None:
    place = forged(first.place, tmp_path / "forged", TAMPERINGS[name].change, None)
    for replay in (True, False):
        assert verify(place, replay=replay).code == INVALID
    assert read_independently(place)["exit"] == INVALID


# --- old images -------------------------------------------------------------------------------


def test_an_older_image_of_the_whole_record_is_right_but_for_who_has_seen_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = played(tmp_path / "record")
    image = shutil.copytree(record, tmp_path / "image")
    grow(record)
    note = seen(record)
    assert verify(image).code == VALID
    report = verify(image, witness=seen_by_witness(note, WITNESS.cosigner))
    (found,) = report.findings
    assert found.what.startswith("cut off: archive.example/floor-2 has seen ")
    assert found.seq == seen_by_witness(note, WITNESS.cosigner).checkpoint.size
    assert independently(image, note, tmp_path) == INVALID


def test_an_older_image_of_one_segment_does_not_fit_into_the_record(tmp_path: Path) -> None:
    record = played(tmp_path / "record", rounds=4)
    last = max((record / "segments").glob("0*.seg"))
    older = last.read_bytes()
    grow(record, count=200)
    number = int(last.stem)
    segment_file(record, number).write_bytes(older)
    found = verify(record).findings[0]
    assert (found.segment, found.offset) == (number + 1, 24)
    assert found.what == "its snapshot has another seq than the segment before it ends with"
    assert read_independently(record)["exit"] == INVALID


def test_a_segment_of_another_record_does_not_fit_in(tmp_path: Path) -> None:
    record, other = played(tmp_path / "record"), played(tmp_path / "other")
    segment_file(record, 2).write_bytes(segment_file(other, 2).read_bytes())
    report = verify(record)
    assert {found.segment for found in report.findings} == {2, 3}
    assert report.findings[0].what.startswith("it is a segment of holecard/mega-1/")
    assert read_independently(record)["exit"] == INVALID


# --- what a record alone cannot tell ----------------------------------------------------------


def cut_after(place: Path, folder: Path) -> Iterator[tuple[int, Path]]:
    """The record cut off behind each of its records, with zeros in the place of the rest."""
    (only,) = segments(place)
    for frame in only.frames:
        copy = shutil.copytree(place, folder / str(frame.seq))
        end = only.buffer[: frame.end].ljust(len(only.buffer), b"\0")
        segment_file(copy, 1).write_bytes(end)
        yield frame.seq, copy


def test_where_an_unclosed_record_was_cut_off_only_a_witness_can_tell(
    first: Original, tmp_path: Path
) -> None:
    """The bound: cut off behind any record it looks like that of a controller that was stopped
    there. It is said that it was not closed and what has no signature; and who has seen a record
    of so many misses each that is gone of those, and none that came later."""
    (only,) = segments(first.place)
    checkpoints = [
        (frame.seq, json.loads(frame.data)["data"]["note"])
        for frame in only.frames
        if json.loads(frame.data)["kind"] == "checkpoint"
    ]
    closing = len(only.frames) - 2
    for last, place in cut_after(first.place, tmp_path):
        report = verify(place, replay=False)
        assert (report.code, report.last) == (VALID, last)
        assert any("has not closed it" in one for one in report.remarks) == (last <= closing)
        unsigned = any("have no signature" in one for one in report.remarks)
        assert unsigned == (last not in dict(checkpoints))
        for _, text in checkpoints:
            note = parse_note(text)
            size = int(note.text.split("\n")[1])
            mine = format_note(note.text, *note.signatures, WITNESS.cosign(note.text, SECONDS))
            found = verify(
                place, witness=seen_by_witness(mine.encode(), WITNESS.cosigner), replay=False
            ).findings
            assert bool(found) == (size > last)


# --- the witness's own word -------------------------------------------------------------------


def test_no_bit_of_what_a_witness_says_can_be_another(first: Original) -> None:
    note = seen(first.place)
    assert (
        verify(first.place, witness=seen_by_witness(note, WITNESS.cosigner), replay=False).code
        == VALID
    )
    refused = found = 0
    for at in range(len(note)):
        for bit in range(8):
            changed = bytearray(note)
            changed[at] ^= 1 << bit
            try:
                witness = seen_by_witness(bytes(changed), WITNESS.cosigner)
            except NoteProblem:
                refused += 1
                continue
            report = verify(first.place, witness=witness, replay=False)
            assert report.code == INVALID, (at, bit, bytes(changed))
            found += 1
    assert refused + found == 8 * len(note)
    assert found > 100  # the table's own signature below it is held against the record's keys
