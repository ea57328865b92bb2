"""Finds records by number, by round, or from the end, without reading the whole record."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from controller.audit.errors import RecordDamaged, cannot_read
from controller.audit.format.frames import HEAD_SIZE, MOST_BYTES, RecordFrame, unpack
from controller.audit.format.records import OpenedData, Record, RecordPosition
from controller.audit.format.segments import open_segment, segment_file
from controller.audit.read.heads import existing_segments, head, segment_of
from controller.audit.read.reader import ASK, closed, read_segment, record_of
from controller.procedure.model.effects import Tell


class LocatedRecord(NamedTuple):
    """A record with its position, its encoded bytes, and the `opened` data of its boot."""

    place: RecordPosition
    data: bytes
    record: Record
    opened: OpenedData | None


def of_seqs(record: Path, first: int, last: int) -> Iterator[LocatedRecord]:
    """The existing records of these numbers. Raises NoRecord, RecordDamaged, CannotWrite."""
    for told in _from(record, segment_of(record, first)):
        if told.place.seq > last:
            return
        if told.place.seq >= first:
            yield told


def of_rounds(record: Path, first: int, last: int) -> Iterator[LocatedRecord]:
    """All records of these rounds except snapshots. A round starts with its first wager and ends
    before the first wager of the next one. Raises NoRecord, RecordDamaged, CannotWrite."""
    there = existing_segments(record)
    begin = _before_round(record, there, first - 1)
    lying: list[LocatedRecord] = []
    """The first wager of the next round, and the records after it."""
    at = 0
    for number in (one for one in there if one >= begin):
        if number > begin and head(record, number).record.round > last:
            break
        for told in _segment(record, number, followed=number != there[-1]):
            if told.record.kind == "snapshot":
                continue
            if told.record.round > at:
                at = told.record.round
                yield from lying if first <= at <= last else ()
                lying = []
            wagers = _wagers(told.record) if told.record.kind == "decision" else None
            if lying or wagers:
                lying.append(told)
                if wagers == 0:
                    yield from lying if first <= at <= last else ()
                    lying = []
            elif first <= at <= last:
                yield told
    if at > 0 and first <= at + 1 <= last:
        yield from lying


class EventOutline(msgspec.Struct, frozen=True, gc=False):
    """The fields of an event that every version of the code records."""

    type: str
    commitment: str = ""


class EffectOutline(msgspec.Struct, frozen=True, gc=False):
    """The fields of an effect that every version of the code records."""

    type: str
    tell: str = ""
    count: int = 0
    round: int = 0


class DecisionOutline(msgspec.Struct, frozen=True, gc=False):
    """The `data` of a decision, without the fields that depend on the code's version."""

    event: EventOutline
    effects: tuple[EffectOutline, ...] = ()
    sealed: str = ""


decode_outline: Final = msgspec.json.Decoder(DecisionOutline).decode


def _wagers(decision: Record) -> int | None:
    """The number of seats with a wager while wagers are taken; None at any other time."""
    try:
        effects = decode_outline(decision.data).effects
    except msgspec.DecodeError:
        return None  # decided by other code
    counts = [effect.count for effect in effects if effect.tell == Tell.TAKE_WAGERS.value]
    return counts[0] if counts else None


def last_of(record: Path, count: int) -> list[LocatedRecord]:
    """The last `count` records. Raises NoRecord, RecordDamaged, CannotWrite."""
    found: list[LocatedRecord] = []
    for number in reversed(existing_segments(record)):
        tail = deque(_segment(record, number), count - len(found))
        found = [*tail, *found]
        if len(found) == count:
            break
    return found


def last_round(record: Path) -> int:
    """The current round. Raises NoRecord, RecordDamaged, CannotWrite."""
    return max(told.record.round for told in _segment(record, existing_segments(record)[-1]))


def at(record: Path, place: RecordPosition) -> tuple[RecordFrame, Record]:
    """The record at a stored position. Raises RecordDamaged if another one is there."""
    file = segment_file(record, place.segment)
    try:
        with open_segment(file) as opened:
            opened.seek(place.offset)
            data = opened.read(HEAD_SIZE + MOST_BYTES)
    except OSError as problem:
        raise cannot_read(file, problem) from None
    frame = unpack(data, 0)
    if frame is None or frame.seq != place.seq:
        raise RecordDamaged(file, f"offset {place.offset}: record {place.seq} is not there", ASK)
    return frame, record_of(file, frame)


class BootLookup:
    """Finds the boots of single records; caches them by segment."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._known: dict[int, list[tuple[int, OpenedData | None]]] = {}
        """For each segment: from which seq on which boot's `opened` data holds."""

    def opened(self, place: RecordPosition) -> OpenedData | None:
        """The `opened` data of the record's boot. Raises RecordDamaged, CannotWrite."""
        if place.segment not in self._known:
            self._known[place.segment] = _boots(self._record, place.segment)
        known = self._known[place.segment]
        return known[bisect_right(known, place.seq, key=_seq) - 1][1]


_seq: Final = itemgetter(0)


def _boots(record: Path, number: int) -> list[tuple[int, OpenedData | None]]:
    found: list[tuple[int, OpenedData | None]] = []
    for told in _segment(record, number):
        if not found or told.record.kind == "opened":
            found.append((told.place.seq, told.opened))
    return found


def _from(record: Path, number: int) -> Iterator[LocatedRecord]:
    there = existing_segments(record)
    for one in there:
        if one >= number:
            yield from _segment(record, one, followed=one != there[-1])


def _segment(record: Path, number: int, *, followed: bool = False) -> Iterator[LocatedRecord]:
    segment = read_segment(record, number)
    opened = segment.snapshot.opened or None
    for frame in segment.frames:
        found = record_of(segment.file, frame)
        if found.kind == "opened":
            opened = msgspec.json.decode(found.data, type=OpenedData)
        yield LocatedRecord(segment.place(frame), frame.data, found, opened)
    if followed:
        closed(segment)


def _before_round(record: Path, there: list[int], turn: int) -> int:
    """The last segment that starts before this round; round numbers never decrease."""
    at = bisect_left(there, turn, key=lambda number: head(record, number).record.round)
    return there[max(at - 1, 0)]
