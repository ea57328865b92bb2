"""Follows a record while it is being written, from segment to segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.errors import (
    CannotProve,
    IndexAhead,
    NothingSigned,
    NotVoided,
    RecordProblem,
    cannot_read,
)
from controller.audit.format.records import ChainPosition, OpenedData, RecordPosition
from controller.audit.format.segments import (
    HEAD_SIZE,
    HEADER_SIZE,
    MAX_BYTES,
    numbers,
    segment_file,
)
from controller.audit.format.tail import WRONG, classify
from controller.audit.read.lookup import LocatedRecord, NoMatch
from controller.audit.read.reader import (
    good_frames,
    load,
    read_part,
    read_segment,
    record_of,
    segments,
    tail_problem,
)


def check_end(record: Path) -> None:
    """Raise RecordsMissing or UnexplainedTail if the bytes after the last good record are wrong.

    A record that is being written may look wrong for a moment, so an error counts only if a second
    read finds it at the same place. Raises RecordDamaged, CannotWrite for the last segment.
    """
    first, _ = _wrong_end(record)
    if first is None:
        return
    place, problem = _wrong_end(record)
    if place == first and problem is not None:
        raise problem


@contextmanager
def to_its_end(record: Path) -> Iterator[None]:
    """Check the record's end after the block, and also if the block finds nothing or cannot prove
    it: the damaged end may be the reason. Raises as check_end()."""
    try:
        yield
    except (NoMatch, CannotProve, IndexAhead, NotVoided, NothingSigned):
        check_end(record)
        raise
    check_end(record)


def _wrong_end(record: Path) -> tuple[tuple[int, int], RecordProblem] | tuple[None, None]:
    """Segment and offset of a wrong end, and its error."""
    there = numbers(record)
    if there:
        segment = read_segment(record, there[-1])
        tail = segment.tail()
        if tail.verdict in WRONG:
            return (segment.number, tail.offset), tail_problem(segment, tail)
    return None, None


CHUNK: Final = 1024 * 1024
"""Bytes per read; more than any frame has."""
assert CHUNK > HEAD_SIZE + MAX_BYTES


class Follower:
    """Reads records that are appended after its creation; more() returns the new ones."""

    def __init__(self, record: Path) -> None:
        """Raises NoRecord, RecordDamaged, CannotWrite."""
        self._record = record
        self._number = numbers(record)[-1]
        segment = read_segment(record, self._number)
        self._at = segment.end
        self.where = segment.after
        """The position of the last record that was read."""
        self._opened = segment.snapshot.opened or None
        self._good = self._number
        """The segment of the last record."""
        self._looked = (0, 0, 0)
        """Position and file time at the last check of the end."""
        self.durable = max(frame.before for frame in segment.frames)
        """The last record that a later one states to be durable. Records beyond it may not be
        durable yet, and be lost with power."""
        for frame in segment.frames:
            self._opened = self._boot(segment.file, frame.data) or self._opened

    def more(self) -> Iterator[LocatedRecord]:
        """Yield new records. Raises RecordDamaged, CannotWrite."""
        while True:
            yield from self._of_segment()
            following = segment_file(self._record, self._number + 1)
            if not following.exists():
                return
            yield from self._of_segment()  # records appended before the next segment was started
            self._number, self._at = self._number + 1, HEADER_SIZE

    def check_end(self) -> None:
        """If no record follows, check whether the record is damaged there. Reads only if the
        position or the file has changed. Raises RecordsMissing, UnexplainedTail, RecordDamaged,
        CannotWrite."""
        file = segment_file(self._record, self._number)
        here = (self._number, self._at, _changed(file))
        if here == self._looked:
            return
        self._looked = here
        tail = classify(load(file, self._number), self._at, self.where.seq)
        if tail.verdict in WRONG:
            for _ in segments(self._record, self._good):
                continue  # validates all segments but the last
            check_end(self._record)

    def _of_segment(self) -> Iterator[LocatedRecord]:
        file = segment_file(self._record, self._number)
        while True:
            chunk = read_part(file, self._at, CHUNK)
            base, begin = self._at, self.where
            for frame in good_frames(chunk, 0, begin):
                self.where = ChainPosition(frame.seq, frame.chain)
                self.durable = max(self.durable, frame.before)
                self._at, self._good = base + frame.end, self._number
                self._opened = self._boot(file, frame.data) or self._opened
                yield LocatedRecord(
                    RecordPosition(self._number, base + frame.offset, frame.seq),
                    frame.data,
                    record_of(file, frame),
                    self._opened,
                )
            if self.where == begin:
                return

    def _boot(self, file: Path, data: bytes) -> OpenedData | None:
        if b'"kind":"opened"' not in data:
            return None
        try:
            found = msgspec.json.decode(data, type=_OpenedRecord)
        except msgspec.DecodeError:
            return None
        return found.data if found.kind == "opened" else None


class DurableRecords:
    """Delays the records of a `Follower` until a later record states that they are durable."""

    def __init__(self, following: Follower, begin: Iterable[LocatedRecord] = ()) -> None:
        """`begin`: records that were read before."""
        self._following = following
        self._waiting = deque(begin)

    def more(self) -> Iterator[LocatedRecord]:
        """Yield durable records. Raises RecordDamaged, CannotWrite."""
        self._waiting.extend(self._following.more())
        while self._waiting and self._waiting[0].place.seq <= self._following.durable:
            yield self._waiting.popleft()

    def rest(self) -> Iterator[LocatedRecord]:
        """Yield the remaining records, if no later one will follow."""
        while self._waiting:
            yield self._waiting.popleft()


class _OpenedRecord(msgspec.Struct, frozen=True):
    kind: str
    data: OpenedData


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError as problem:
        raise cannot_read(file, problem) from None
