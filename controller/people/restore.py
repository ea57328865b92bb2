"""Restores the sign-in state from the record, as far back as it matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import Record
from controller.audit.format.segments import HEADER_SIZE, RecordFrame, numbers, segment_file, unpack
from controller.audit.log import RecordOpening
from controller.audit.read.reader import ASK, load, record_of
from controller.people.rate_limit import DAY
from controller.people.records import SignInData, SignOutData, read_sign_in_entry
from controller.people.sign_in import SignInState, fold

MAX_SEGMENTS: Final = 64
"""Maximum number of segments that are searched for the dealer's sign-in."""
_DAY_US: Final = DAY // 1000
_COUNTS: Final = (b'"kind":"person"', b'"kind":"opened"')
"""Entries about people, and starts of boots, where the clocks change."""


def restore_sign_ins(opening: RecordOpening) -> SignInState:
    """Raises RecordDamaged if an entry about people cannot be decoded."""
    if opening.last is None:
        return SignInState()
    since = opening.last.utc - _DAY_US
    found = _counting(opening.records)
    begins = opening.records[0].utc
    for number in _before(opening):
        if begins <= since and _knows_dealer(found):
            break
        begins, records = _read(opening.record, number)
        found = [*records, *found]
    if opening.last not in found[-1:]:
        found.append(opening.last)  # for its time
    try:
        return fold(found)
    except ValueError as problem:
        raise RecordDamaged(opening.record, str(problem), ASK) from None


def _before(opening: RecordOpening) -> Iterator[int]:
    """The numbers of the segments before the last one, newest first."""
    last = 0 if opening.segment is None else opening.segment.number
    left = [number for number in numbers(opening.record) if number < last]
    yield from reversed(left[-MAX_SEGMENTS:])


def _counting(records: list[Record]) -> list[Record]:
    """Entries about people, and those before and after the start of a boot."""
    boots = {at for at, record in enumerate(records) if record.kind == "opened"}
    return [
        record
        for at, record in enumerate(records)
        if record.kind == "person" or at in boots or at + 1 in boots
    ]


def _knows_dealer(found: list[Record]) -> bool:
    """Whether a dealer's sign-in or sign-out is among them."""
    said = (_said(record) for record in found)
    return any(isinstance(one, SignInData | SignOutData) and one.role == "dealer" for one in said)


def _said(record: Record) -> object:
    try:
        return read_sign_in_entry(record)
    except ValueError:  # reported by fold()
        return None


def _read(record: Path, number: int) -> tuple[int, list[Record]]:
    """The start time of a segment, and its entries that matter. Only these are decoded."""
    file = segment_file(record, number)
    buffer = load(file, number)
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is incomplete", ASK)
    frames = _frames(buffer) if any(one in buffer for one in _COUNTS) else iter(())
    wanted: dict[int, RecordFrame] = {}
    before: RecordFrame | None = None
    for frame in frames:
        if any(one in frame.data for one in _COUNTS):
            wanted |= {one.seq: one for one in (before, frame) if one is not None}
        before = frame
    records = [record_of(file, one) for one in wanted.values()]
    return record_of(file, first).utc, _counting(records)


def _frames(buffer: bytes) -> Iterator[RecordFrame]:
    at = HEADER_SIZE
    while (frame := unpack(buffer, at)) is not None:
        yield frame
        at = frame.end
