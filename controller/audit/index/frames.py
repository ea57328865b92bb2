"""Reads the frames of a record that its index does not have yet, also while the record is written.

Only durable frames are read: a later frame, the writer or our own sync proves it. So after a power
loss the index is never ahead of the record.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

from controller.audit.errors import CannotWrite, NoRecord, RecordDamaged, cannot_read
from controller.audit.format.records import ChainPosition
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
from controller.audit.read.reader import ASK, good_frames, record_of, snapshot_of

WINDOW: Final = 2 * (MAX_BYTES + HEAD_SIZE)
"""Bytes of one read; every frame is complete in one of two overlapping windows."""
_LAST: Final = (1 << 63) - 1
_NOTHING_TO_SYNC: Final = frozenset({errno.EINVAL, errno.EROFS})
"""Errors of fdatasync on a read-only file system."""


class IndexPosition(NamedTuple):
    """The last frame of an index."""

    segment: int
    offset: int
    until: int
    """Offset of the next frame."""
    seq: int
    chain: bytes


class NewFrames(NamedTuple):
    frames: list[tuple[int, int, RecordFrame]]
    """Each with its segment, and the offset of its window in the segment."""
    position: IndexPosition
    more: bool
    """Whether there may be more frames."""


class RecordStart(NamedTuple):
    """How a record begins, after retired segments."""

    origin: str
    position: IndexPosition
    """The position before its first record."""


def record_start(record: Path) -> RecordStart:
    """Raises NoRecord, RecordDamaged and CannotWrite."""
    try:
        there = numbers(record)
    except OSError as problem:
        raise CannotWrite(record, f"cannot be read: {problem.strerror}", "mend that") from None
    if not there:
        raise NoRecord(record, "no record has begun here", "name a record's directory")
    number = there[0]
    with _Segment(record, number) as segment:
        first = unpack(segment.read(HEADER_SIZE), 0)
    file = segment.file
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", ASK)
    snapshot = snapshot_of(file, number, record_of(file, first))
    return RecordStart(
        snapshot.origin,
        IndexPosition(number, 0, HEADER_SIZE, first.seq - 1, bytes.fromhex(snapshot.chain)),
    )


def has_frame(record: Path, position: IndexPosition) -> bool:
    """Returns whether the record contains the last frame of an index. Raises RecordDamaged and
    CannotWrite."""
    if not segment_file(record, position.segment).exists():
        return False
    with _Segment(record, position.segment) as segment:
        frame = unpack(segment.read(position.offset), 0)
    return frame is not None and (frame.seq, frame.chain) == (position.seq, position.chain)


def read_new_frames(
    record: Path, position: IndexPosition, room: int, durable: int | None = None
) -> NewFrames:
    """Read the frames after `position`: up to `room` bytes of records, and one more.

    `durable` is the last seq that is known to be durable; without it the frames are synced first.
    Raises RecordDamaged and CannotWrite.
    """
    found: list[tuple[int, int, RecordFrame]] = []
    last = _LAST if durable is None else durable
    here = position
    known = 0
    while room > 0 and here.seq < last:
        # Checked first: a segment that has a successor is complete.
        followed = segment_file(record, here.segment + 1).exists()
        begun = here.until > HEADER_SIZE
        with _Segment(record, here.segment) as segment:
            for start, frames in segment.windows(here, room, last):
                begun = True
                found += [(here.segment, start, frame) for frame in frames]
                room -= sum(len(frame.data) for frame in frames)
                known = max(known, frames[-1].before)
                end = frames[-1]
                offset, until = start + end.offset, start + end.end
                position = IndexPosition(here.segment, offset, until, end.seq, end.chain)
            if found and durable is None and not followed and known < position.seq:
                segment.settle()
        if not begun:
            if found:
                return NewFrames(found, position, True)  # the error is reported next time
            file = segment_file(record, position.segment)
            what = (
                f"offset {position.until}: no whole record after seq {position.seq}, and the next"
            )
            raise RecordDamaged(file, f"{what} segment does not go on from there", ASK)
        if not followed:
            break
        here = position._replace(segment=position.segment + 1, until=HEADER_SIZE)
    return NewFrames(found, position, room <= 0)


class _Segment:
    """The open file of a segment."""

    def __init__(self, record: Path, number: int) -> None:
        self.file = segment_file(record, number)
        self._number = number

    def __enter__(self) -> Self:
        try:
            self._opened = open_segment(self.file)
        except FileNotFoundError:
            raise RecordDamaged(self.file, "is missing", "put it back from the archive") from None
        except OSError as problem:
            raise self._unreadable(problem) from None
        self._fd = self._opened.fileno()
        try:
            read_header(
                self.file, self._pread(HEADER_SIZE, 0), self._number, os.fstat(self._fd).st_size
            )
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, at: int) -> bytes:
        """Read a window."""
        return self._pread(WINDOW, at)

    def windows(
        self, here: IndexPosition, room: int, last: int
    ) -> Iterator[tuple[int, list[RecordFrame]]]:
        """Yield the valid frames window by window, until `room` is used up or seq `last` is
        reached."""
        start, where = here.until, ChainPosition(here.seq, here.chain)
        while room > 0:
            frames = []
            for frame in good_frames(self.read(start), 0, where):
                if room <= 0 or frame.seq > last:
                    break
                frames.append(frame)
                room -= len(frame.data)
            if not frames:
                return
            yield start, frames
            start, where = start + frames[-1].end, ChainPosition(frames[-1].seq, frames[-1].chain)

    def settle(self) -> None:
        """Make durable what was read."""
        try:
            os.fdatasync(self._fd)
        except OSError as problem:
            if problem.errno not in _NOTHING_TO_SYNC:
                raise self._unreadable(problem) from None

    def _pread(self, size: int, at: int) -> bytes:
        try:
            return os.pread(self._fd, size, at)
        except OSError as problem:
            raise self._unreadable(problem) from None

    def _unreadable(self, problem: OSError) -> CannotWrite:
        return cannot_read(self.file, problem)
