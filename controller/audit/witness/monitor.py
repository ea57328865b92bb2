"""Monitors cosignatures for a running table: new notes in `cosigned/`, validated by the record's
own checkpoints, and since when records are not cosigned.

  state = recorded_state(record)                 # what the record itself contains
  report = check_witnesses(record, state.size)   # what to record now

Witness keys are unknown here: a note is accepted if the table signed its checkpoint, and a
verifier checks the cosignature with the witness's key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.frames import RecordFrame, unpack
from controller.audit.format.notes import (
    MAX_SIZE,
    NoteProblem,
    SignedNote,
    format_note,
    parse_checkpoint,
    parse_note,
)
from controller.audit.format.records import Kind, NoteData
from controller.audit.format.segments import HEADER_SIZE, numbers, segment_file
from controller.audit.read.heads import first_head, segment_of
from controller.audit.read.reader import load, record_of
from controller.audit.witness.cosignatures import COSIGNED

MOST_NOTES: Final = 32
"""Limit per check: the newest notes; each covers what older ones cover."""
MOST_SEGMENTS: Final = 16
"""Search limit for the recorded state. A state further back is recorded again, once per start."""
ABOUT_ITSELF: Final[frozenset[Kind]] = frozenset(
    ("snapshot", "certificate", "checkpoint", "clock", "witnessed", "unwitnessed")
)
"""Kinds that need no cosignature of their own. Otherwise each recorded cosignature would require
the next one."""
_NAME: Final = re.compile(r"[1-9][0-9]{0,17}")
_KIND: Final = re.compile(rb'"round":[0-9]+,"kind":"([a-z]+)"')
_TOLD: Final = (b'"kind":"witnessed"', b'"kind":"unwitnessed"')
_COSIGNATURE: Final = 72
"""Size of a cosignature's time and signature, behind the key id."""


class WitnessState(Struct, frozen=True):
    """The cosigned state according to the record."""

    size: int = 0
    """The size that the last `witnessed` record covers; 0 without one."""
    since: int = 0
    """`since` of an `unwitnessed` record after it; 0 without one."""


class CosignedCheckpoint(Struct, frozen=True):
    """A cosigned checkpoint of this record."""

    size: int
    note: str


class WitnessReport(Struct, frozen=True):
    """The result of a check."""

    seen: tuple[CosignedCheckpoint, ...]
    """To record, in order: each covers records that no earlier one covers."""
    size: int
    """The largest cosigned size; 0 if none is."""
    since: int
    """The UTC of the first record that is not cosigned; 0 if all are."""
    wrong: tuple[str, ...]
    """Rejected notes with the reason."""


class _First(Struct, frozen=True):
    """A record that needs a cosignature."""

    seq: int
    utc: int


_NOWHERE: Final = _First(0, 0)
"""No such record."""


def recorded_state(record: Path) -> WitnessState:
    """Search the last segments for it. Raises RecordProblem."""
    since = 0
    for number in reversed(numbers(record)[-MOST_SEGMENTS:]):
        file = segment_file(record, number)
        buffer = load(file, number)
        if not any(one in buffer for one in _TOLD):
            continue
        told = [frame for frame in _frames(buffer) if _kind(frame) in ("witnessed", "unwitnessed")]
        for frame in reversed(told):
            data = record_of(file, frame).data
            if _kind(frame) == "witnessed":
                text = parse_note(msgspec.json.decode(data, type=NoteData).note).text
                return WitnessState(parse_checkpoint(text).size, since)
            since = since or msgspec.json.decode(data, type=dict[str, int])["since"]
    return WitnessState(0, since)


def cosigned_checkpoints(record: Path, told: int) -> tuple[tuple[int, int], ...]:
    """Size and modification time of the notes in `cosigned/` beyond size `told`. Raises OSError."""
    names = [file for file in (record / COSIGNED).glob("*.note") if _NAME.fullmatch(file.stem)]
    newer = sorted((int(file.stem), file) for file in names if int(file.stem) > told)
    return tuple((size, file.stat().st_mtime_ns) for size, file in newer[-MOST_NOTES:])


def check_witnesses(record: Path, told: int) -> WitnessReport:
    """Check for new cosignatures beyond size `told`. Raises RecordProblem, OSError."""
    seen: list[CosignedCheckpoint] = []
    wrong: list[str] = []
    size, first = told, _first_after(record, told)
    for over, _ in cosigned_checkpoints(record, told):
        try:
            note = _countersigned(record, over)
        except (NoteProblem, RecordProblem) as problem:
            wrong.append(f"{COSIGNED}/{over}.note: {problem}")
            continue
        size = over
        if first.seq and first.seq <= over:
            seen.append(CosignedCheckpoint(over, note))
            first = _first_after(record, over)
    return WitnessReport(tuple(seen), size, first.utc, tuple(wrong))


def _countersigned(record: Path, size: int) -> str:
    """The cosigned note of this size, as it is recorded. Raises NoteProblem, RecordProblem,
    OSError."""
    with (record / COSIGNED / f"{size}.note").open("rb") as opened:
        note = parse_note(opened.read(MAX_SIZE + 1))
    ours = _signed_after(record, size)
    if ours is None or ours.text != note.text:
        raise NoteProblem("no checkpoint of this record")
    by_table = [one for one in note.signatures if one in ours.signatures]
    by_others = [
        one
        for one in note.signatures
        if one.name != parse_checkpoint(note.text).origin and len(one.bytes) == _COSIGNATURE
    ]
    if not by_table:
        raise NoteProblem("not signed by the table")
    if not by_others:
        raise NoteProblem("countersigned by nobody")
    return format_note(note.text, *by_table, *by_others)


def _signed_after(record: Path, size: int) -> SignedNote | None:
    """The first checkpoint after record `size`. Raises RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) == "checkpoint":
            data = record_of(file, frame).data
            return parse_note(msgspec.json.decode(data, type=NoteData).note)
    return None


def _first_after(record: Path, size: int) -> _First:
    """The first record after record `size` that needs a cosignature. Raises RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) not in ABOUT_ITSELF:
            return _First(frame.seq, record_of(file, frame).utc)
    return _NOWHERE


def _behind(record: Path, size: int) -> Iterator[tuple[Path, RecordFrame]]:
    """The frames after record `size`, each with its file."""
    begins = first_head(record)
    start = begins.number if size < begins.record.seq else segment_of(record, size)
    for number in [one for one in numbers(record) if one >= start]:
        file = segment_file(record, number)
        for frame in _frames(load(file, number)):
            if frame.seq > size:
                yield file, frame


def _frames(buffer: bytes) -> Iterator[RecordFrame]:
    """All complete frames; the last one may still be in the page cache only."""
    at = HEADER_SIZE
    while (frame := unpack(buffer, at)) is not None:
        yield frame
        at = frame.end


def _kind(frame: RecordFrame) -> str:
    """The kind, without decoding the record: there may be many."""
    found = _KIND.search(frame.data)
    return "" if found is None else found[1].decode()
