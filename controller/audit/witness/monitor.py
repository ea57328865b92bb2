"""What a witness has countersigned of a record, as a running table finds it: notes in `cosigned/`,
held against the record's own checkpoints, and what of the record none of them is over.

    said = said_before(record)                 # what the record itself tells of its witnesses
    found = look(record, said.size)            # what is to be told now

The keys of witnesses are not known here: a note counts by what the table has signed of it, and a
verifier holds the countersignature against the witness's key.
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
"""The newest of those that are not told of yet; each is over all that older ones are over."""
MOST_SEGMENTS: Final = 16
"""So far back it is looked for what the record tells of its witnesses. What is not found is told
once more, and once for each start."""
ABOUT_ITSELF: Final[frozenset[Kind]] = frozenset(
    ("snapshot", "certificate", "checkpoint", "clock", "witnessed", "unwitnessed")
)
"""Kinds that tell nothing of the table. What a witness has not seen but these, it has not missed:
or else its own word would be news for it, and each word would bring the next one."""
_NAME: Final = re.compile(r"[1-9][0-9]{0,17}")
_KIND: Final = re.compile(rb'"round":[0-9]+,"kind":"([a-z]+)"')
_TOLD: Final = (b'"kind":"witnessed"', b'"kind":"unwitnessed"')
_COSIGNATURE: Final = 72
"""Bytes of a time and a signature, behind the key id."""


class WitnessState(Struct, frozen=True):
    """What the record tells of its witnesses."""

    size: int = 0
    """So many records the last `witnessed` is over; 0 without one."""
    since: int = 0
    """That of an `unwitnessed` behind it; 0 without one."""


class SeenCheckpoint(Struct, frozen=True):
    """A checkpoint of this record that somebody has countersigned."""

    size: int
    note: str


class WitnessReport(Struct, frozen=True):
    """What a look has found."""

    seen: tuple[SeenCheckpoint, ...]
    """To be told, in their order: each is over something that none before it is over."""
    size: int
    """So many records are countersigned; 0: none ever was."""
    since: int
    """When the first record was written that nobody has countersigned, by `utc`; 0 without one."""
    wrong: tuple[str, ...]
    """Notes that count for nothing, and why."""


class _First(Struct, frozen=True):
    """A record that tells something of the table."""

    seq: int
    utc: int


_NOWHERE: Final = _First(0, 0)
"""There is no such record."""


def recorded_state(record: Path) -> WitnessState:
    """As the last segments have it. RecordProblem."""
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
    """The notes in `cosigned/` over more than is told of: over how many records, and when the file
    was written. OSError."""
    names = [file for file in (record / COSIGNED).glob("*.note") if _NAME.fullmatch(file.stem)]
    newer = sorted((int(file.stem), file) for file in names if int(file.stem) > told)
    return tuple((size, file.stat().st_mtime_ns) for size, file in newer[-MOST_NOTES:])


def check_witnesses(record: Path, told: int) -> WitnessReport:
    """What there is now; `told`: so many records are told of as countersigned. RecordProblem,
    OSError."""
    seen: list[SeenCheckpoint] = []
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
            seen.append(SeenCheckpoint(over, note))
            first = _first_after(record, over)
    return WitnessReport(tuple(seen), size, first.utc, tuple(wrong))


def _countersigned(record: Path, size: int) -> str:
    """The note over so many records, for the record. NoteProblem, RecordProblem, OSError."""
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
    """The first checkpoint behind record `size`. RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) == "checkpoint":
            data = record_of(file, frame).data
            return parse_note(msgspec.json.decode(data, type=NoteData).note)
    return None


def _first_after(record: Path, size: int) -> _First:
    """The first record behind record `size` that tells something of the table. RecordProblem."""
    for file, frame in _behind(record, size):
        if _kind(frame) not in ABOUT_ITSELF:
            return _First(frame.seq, record_of(file, frame).utc)
    return _NOWHERE


def _behind(record: Path, size: int) -> Iterator[tuple[Path, RecordFrame]]:
    """What stands behind record `size`, with its file."""
    begins = first_head(record)
    start = begins.number if size < begins.record.seq else segment_of(record, size)
    for number in [one for one in numbers(record) if one >= start]:
        file = segment_file(record, number)
        for frame in _frames(load(file, number)):
            if frame.seq > size:
                yield file, frame


def _frames(buffer: bytes) -> Iterator[RecordFrame]:
    """As far as they are whole: the last one may be on its way to the disk."""
    at = HEADER_SIZE
    while (frame := unpack(buffer, at)) is not None:
        yield frame
        at = frame.end


def _kind(frame: RecordFrame) -> str:
    """Without decoding it: there may be many."""
    found = _KIND.search(frame.data)
    return "" if found is None else found[1].decode()
