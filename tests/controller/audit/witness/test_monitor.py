"""Monitoring of cosignatures by a running table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from controller.audit.format.notes import format_note, parse_note
from controller.audit.format.records import CONTROLLER, NoteData, RecordEntry
from controller.audit.format.segments import numbers, segment_file
from controller.audit.log import Log
from controller.audit.read.reader import records
from controller.audit.witness import WitnessReport, WitnessState, check_witnesses, recorded_state
from controller.audit.witness.cosignatures import MOST_NOTES, store_notes
from tests.support.audit.record.table import begun, everything, note
from tests.support.audit.tools.outside import WITNESS, play
from tests.support.audit.tools.signers import STRANGER
from tests.support.audit.witnessing import NOW, seen_by


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log with one signed round."""
    made = begun(tmp_path / "record")
    play(made, 1, 1)
    yield made
    made.let_go()


def brought(log: Log) -> int:
    """Cosign and store a note; returns its size."""
    made = seen_by(log.record, log.record.parent / "archive")
    store_notes(log.record, [("n", made.note.encode())], WITNESS.cosigner)
    return made.size


def put(log: Log, size: int, text: str) -> None:
    place = log.record / "cosigned"
    place.mkdir(exist_ok=True)
    (place / f"{size}.note").write_text(text)


def told(log: Log, size: int) -> None:
    """Record the report."""
    text = (log.record / "cosigned" / f"{size}.note").read_text()
    log.write([RecordEntry("witnessed", CONTROLLER, NoteData(text))])
    log.sign()


def test_a_record_without_cosignatures(log: Log) -> None:
    """The time counts from the first start of the controller."""
    first = next(one for one in everything(log.record) if one.kind == "opened")
    found = check_witnesses(log.record, 0)
    assert (found.seen, found.size, found.since, found.wrong) == ((), 0, first.utc, ())
    assert recorded_state(log.record) == WitnessState()


def test_a_stored_note_is_reported_once(log: Log) -> None:
    size = brought(log)
    found = check_witnesses(log.record, 0)
    assert [(one.size, one.note) for one in found.seen] == [
        (size, (log.record / "cosigned" / f"{size}.note").read_text())
    ]
    assert (found.size, found.since) == (size, 0)
    told(log, size)
    assert recorded_state(log.record) == WitnessState(size, 0)
    assert check_witnesses(log.record, size) == WitnessReport((), size, 0, ())


def test_records_after_a_cosignature_are_uncovered(log: Log) -> None:
    size = brought(log)
    log.write([note("later")])
    later = everything(log.record)[-1]
    log.sign()
    assert check_witnesses(log.record, 0).since == later.utc
    assert check_witnesses(log.record, size).since == later.utc


def test_witness_records_need_no_cosignature(log: Log) -> None:
    """Otherwise each recorded cosignature would require the next one."""
    size = brought(log)
    for _ in range(3):
        told(log, size)
        log.write([RecordEntry("unwitnessed", CONTROLLER, {"since": 5})])
        log.sign()
        assert brought(log) > size
        found = check_witnesses(log.record, size)
        assert (found.seen, found.since) == ((), 0)
    log.write([note("a round")])
    log.sign()
    newest = brought(log)
    assert [one.size for one in check_witnesses(log.record, size).seen] == [newest]


def test_each_note_that_covers_more_is_reported(log: Log) -> None:
    sizes = []
    for turn in range(2, 5):
        play(log, turn, turn)
        sizes.append(brought(log))
    assert [one.size for one in check_witnesses(log.record, 0).seen] == sizes


def test_only_the_newest_notes_are_reported(log: Log) -> None:
    sizes = []
    for _ in range(MOST_NOTES + 3):
        log.write([note("more")])
        log.sign()
        sizes.append(brought(log))
    assert [one.size for one in check_witnesses(log.record, 0).seen] == sizes[3:]


def test_an_invalid_note_is_rejected(log: Log) -> None:
    """Recording it would make the record fail verification forever."""
    checkpoint = next(one for one in reversed(everything(log.record)) if one.kind == "checkpoint")
    ours = parse_note(msgspec.json.decode(checkpoint.data, type=NoteData).note)
    size = int(ours.text.splitlines()[1])
    other = ours.text.replace(ours.text.splitlines()[2], "A" * 43 + "=")
    cosigned = WITNESS.cosign(ours.text, NOW)
    for text, why in [
        ("no note", "empty line"),
        (format_note(ours.text, *ours.signatures), "countersigned by nobody"),
        (format_note(ours.text, STRANGER.sign(ours.text), cosigned), "not signed by the table"),
        (format_note(other, *ours.signatures, WITNESS.cosign(other, NOW)), "no checkpoint"),
    ]:
        put(log, size, text)
        found = check_witnesses(log.record, 0)
        assert (found.seen, found.size) == ((), 0)
        (wrong,) = found.wrong
        assert wrong.startswith(f"cosigned/{size}.note: ")
        assert why in wrong
    put(log, size, format_note(ours.text, *ours.signatures, cosigned, STRANGER.sign(ours.text)))
    assert [one.note for one in check_witnesses(log.record, 0).seen] == [
        format_note(ours.text, *ours.signatures, cosigned)
    ]


def test_the_recorded_state_is_found_in_older_segments(log: Log) -> None:
    size = brought(log)
    told(log, size)
    log.write([RecordEntry("unwitnessed", CONTROLLER, {"since": 7})])
    play(log, 2, 30)
    assert len(numbers(log.record)) > 3
    assert recorded_state(log.record) == WitnessState(size, 7)
    first = next(one for _, one in records(log.record) if one.seq > size + 3 and one.round == 2)
    assert check_witnesses(log.record, size).since == first.utc


def test_a_record_without_its_first_segments(log: Log) -> None:
    size = brought(log)
    play(log, 2, 30)
    segment_file(log.record, 1).unlink()
    second = next(one for one in everything(log.record) if one.kind != "snapshot")
    assert check_witnesses(log.record, size).since == second.utc
    assert check_witnesses(log.record, 0).since == second.utc
