"""Finds segments and records: by number, round or day, or from the end, reading what is needed."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from controller.audit.errors import NoRecord, RecordDamaged, RecordProblem, cannot_read
from controller.audit.format.records import (
    DAY_US,
    OpenedData,
    Record,
    RecordPosition,
    Snapshot,
    utc_date,
)
from controller.audit.format.segments import (
    HEAD_SIZE,
    HEADER_SIZE,
    MAX_BYTES,
    RecordFrame,
    numbers,
    open_segment,
    read_header,
    segment_file,
    unpack,
)
from controller.audit.read.reader import (
    ASK,
    closed,
    load,
    read_part,
    read_segment,
    record_of,
    snapshot_of,
)
from controller.audit.read.retirements import retirement_files, where_retired
from controller.procedure.model.effects import Tell

PUT_BACK: Final = "put them back from the archive"
_MAX_HEAD_BYTES: Final = HEADER_SIZE + HEAD_SIZE + MAX_BYTES


class FirstRecord(NamedTuple):
    """A segment's first record, which describes all records before it."""

    number: int
    record: Record
    snapshot: Snapshot


def existing_segments(record: Path) -> list[int]:
    """The numbers of the segments, at least one. Raises NoRecord, RecordDamaged."""
    there = numbers(record)
    if not there:
        raise NoRecord(record, "the record has not begun", "wait for its first segment")
    return there


def head(record: Path, number: int) -> FirstRecord:
    """The first record of a segment. Raises RecordDamaged, CannotWrite."""
    file = segment_file(record, number)
    try:
        with open_segment(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            data = opened.read(_MAX_HEAD_BYTES)
    except OSError as problem:
        raise cannot_read(file, problem) from None
    read_header(file, data, number, size)
    first = unpack(data, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", ASK)
    found = record_of(file, first)
    return FirstRecord(number, found, snapshot_of(file, number, found))


def first_head(record: Path) -> FirstRecord:
    """The first record of the first existing segment. Raises NoRecord, RecordDamaged."""
    return head(record, existing_segments(record)[0])


def gone_before(record: Path) -> str:
    """Which segments are missing before the first one, as text; empty if none are, or if they were
    retired. Raises NoRecord."""
    first = existing_segments(record)[0]
    if first == 1 or any(first <= one.number + 1 for one in retirement_files(record)):
        return ""
    return f"segments before {first} are not here"


def segment_of(record: Path, seq: int) -> int:
    """The segment that contains this record, or the last one. Raises NoRecord, and RecordDamaged if
    the record is before the first existing segment."""
    there = existing_segments(record)
    first = head(record, there[0])
    if seq < first.record.seq:
        what = f"record {seq} stands before segment {there[0]}, the first that is here"
        retired = where_retired(record, seqs=(seq, seq))
        raise RecordDamaged(record, retired or what, "look into that case" if retired else ASK)
    return there[bisect_right(there, seq, key=lambda number: head(record, number).record.seq) - 1]


class LocatedRecord(NamedTuple):
    """A record with its position, its encoded bytes, and the `opened` data of its boot."""

    place: RecordPosition
    data: bytes
    record: Record
    opened: OpenedData | None


def of_seqs(record: Path, first: int, last: int) -> Iterator[LocatedRecord]:
    """The existing records of these numbers. Raises NoRecord, RecordDamaged, CannotWrite."""
    for located in _from(record, segment_of(record, first)):
        if located.place.seq > last:
            return
        if located.place.seq >= first:
            yield located


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
        for located in _segment(record, number, followed=number != there[-1]):
            if located.record.kind == "snapshot":
                continue
            if located.record.round > at:
                at = located.record.round
                yield from lying if first <= at <= last else ()
                lying = []
            wagers = _wagers(located.record) if located.record.kind == "decision" else None
            if lying or wagers:
                lying.append(located)
                if wagers == 0:
                    yield from lying if first <= at <= last else ()
                    lying = []
            elif first <= at <= last:
                yield located
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
    return max(located.record.round for located in _segment(record, existing_segments(record)[-1]))


def at(record: Path, place: RecordPosition) -> tuple[RecordFrame, Record]:
    """The record at a stored position. Raises RecordDamaged if another one is there."""
    file = segment_file(record, place.segment)
    frame = unpack(read_part(file, place.offset, HEAD_SIZE + MAX_BYTES), 0)
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
    for located in _segment(record, number):
        if not found or located.record.kind == "opened":
            found.append((located.place.seq, located.opened))
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


_ROUND: Final = re.compile(rb'"round":([0-9]{1,19}),')
_UTC: Final = re.compile(rb'"utc":([0-9]{1,19}),')


class NoMatch(RecordProblem):
    """The record contains none of the selected records."""


class Selection(Struct, frozen=True):
    """A range of rounds, a gaming day, segments up to one, or, with defaults, everything."""

    first: int = 0
    last: int = 0
    day: str = ""
    until: int = 0

    @property
    def everything(self) -> bool:
        return not self.first and not self.day

    def takes(self, record: Record) -> bool:
        if self.first:
            return self.first <= record.round <= self.last
        return not self.day or record.day == self.day

    def may_be_in(self, buffer: bytes) -> bool:
        """Fast pre-check whether a segment may contain selected records."""
        if self.first:
            return any(
                self.first <= int(found[1]) <= self.last for found in _ROUND.finditer(buffer)
            )
        if not self.day or f'"day":"{self.day}"'.encode() in buffer:
            return True
        times = {int(found[1]) // DAY_US for found in _UTC.finditer(buffer)}
        return self.day in {utc_date(number * DAY_US) for number in times}

    def __str__(self) -> str:
        if self.first:
            rounds = f"round {self.first}"
            return rounds if self.first == self.last else f"rounds {self.first} to {self.last}"
        if self.until:
            return f"segments up to {self.until}"
        return f"gaming day {self.day}" if self.day else "all"


def no_match(record: Path, pick: Selection, allowed: str) -> NoMatch:
    """The error that no record matches, with the reason: retired or missing segments. Raises
    NoRecord."""
    retired = where_retired(record, rounds=(pick.first, pick.last), day=pick.day)
    if retired:
        return NoMatch(record, retired, "look into that case")
    before = gone_before(record)
    if not before:
        return NoMatch(record, f"has nothing of {pick}", allowed)
    return NoMatch(record, f"{before}, and nothing of {pick} in the others", PUT_BACK)


class Match(NamedTuple):
    segment: int
    seq: int
    round: int
    signs: bool
    """It is a checkpoint, which only a later one covers."""


def matches(
    record: Path, pick: Selection, tell: Callable[[int], None] = lambda number: None
) -> Iterator[Match]:
    """The positions of all selected records; `tell` is a progress callback with the segment number.
    Raises RecordDamaged, NoRecord."""
    there = numbers(record)
    for number in there:
        tell(number)
        if not pick.may_be_in(load(segment_file(record, number), number)):
            continue
        segment = read_segment(record, number)
        if number != there[-1]:
            closed(segment)
        for frame in segment.frames:
            found = record_of(segment.file, frame)
            if pick.takes(found):
                yield Match(number, found.seq, found.round, found.kind == "checkpoint")
