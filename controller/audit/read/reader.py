"""Reads segments: validates frames by seq and chain, and classifies the tail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from controller.audit.errors import RecordDamaged, RecordsMissing, cannot_read
from controller.audit.format.records import (
    ChainPosition,
    Record,
    RecordPosition,
    Snapshot,
    read_record,
)
from controller.audit.format.segments import (
    HEADER_SIZE,
    RecordFrame,
    chain_start,
    numbers,
    open_segment,
    read_header,
    segment_file,
    unpack,
)
from controller.audit.format.tail import Tail, TailVerdict, classify

ASK = "put it back from the archive, or keep it for whoever looks into it"


class RecordSegment(NamedTuple):
    """One segment, read and validated."""

    file: Path
    number: int
    buffer: bytes
    before: ChainPosition
    """The position before its first record, from its snapshot."""
    snapshot: Snapshot
    frames: list[RecordFrame]
    """The good frames, its snapshot first."""

    @property
    def end(self) -> int:
        return self.frames[-1].end

    @property
    def after(self) -> ChainPosition:
        return ChainPosition(self.frames[-1].seq, self.frames[-1].chain)

    def tail(self) -> Tail:
        return classify(self.buffer, self.end, self.after.seq)

    def place(self, frame: RecordFrame) -> RecordPosition:
        return RecordPosition(self.number, frame.offset, frame.seq)


def load(file: Path, number: int) -> bytes:
    """Read a segment's bytes and validate its header. Raises RecordDamaged, CannotWrite."""
    try:
        with open_segment(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            read_header(file, opened.read(HEADER_SIZE), number, size)
            opened.seek(0)
            buffer = opened.read(size)
    except OSError as problem:
        raise cannot_read(file, problem) from None
    read_header(file, buffer, number, len(buffer))  # again: the read may have been short
    return buffer


def record_of(file: Path, frame: RecordFrame) -> Record:
    """Decode the record of a frame. Raises RecordDamaged."""
    try:
        record = read_record(frame.data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        what = f"offset {frame.offset}, seq {frame.seq}: is no record: {problem}"
        raise RecordDamaged(file, what, ASK) from None
    if record.seq != frame.seq:
        what = f"offset {frame.offset}: the frame says seq {frame.seq}, the record {record.seq}"
        raise RecordDamaged(file, what, ASK)
    return record


def snapshot_of(file: Path, number: int, record: Record) -> Snapshot:
    """Decode and validate a segment's snapshot. Raises RecordDamaged."""
    if record.kind != "snapshot":
        raise RecordDamaged(file, f"begins with a {record.kind}, not with a snapshot", ASK)
    try:
        snapshot = msgspec.json.decode(record.data, type=Snapshot)
        chain = bytes.fromhex(snapshot.chain)
        frontier = [bytes.fromhex(one) for one in snapshot.frontier]
    except (msgspec.DecodeError, ValueError) as problem:
        raise RecordDamaged(file, f"its snapshot cannot be read: {problem}", ASK) from None
    sizes = {len(chain), *map(len, frontier)}
    if snapshot.segment != number or sizes != {32}:
        raise RecordDamaged(file, "its snapshot is of another segment or has no right hashes", ASK)
    if len(frontier) != (record.seq - 1).bit_count():
        raise RecordDamaged(file, f"its snapshot's tree is none of {record.seq - 1} records", ASK)
    if record.seq == 1 and chain != chain_start(snapshot.origin):
        raise RecordDamaged(file, "the record does not begin with the chain of its origin", ASK)
    return snapshot


def read_segment(record: Path, number: int, after: ChainPosition | None = None) -> RecordSegment:
    """Read segment `number` up to its last good frame; `after` is the end of the segment before.

    Raises RecordDamaged unless it continues there.
    """
    file = segment_file(record, number)
    buffer = load(file, number)
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", ASK)
    snapshot = snapshot_of(file, number, record_of(file, first))
    before = ChainPosition(first.seq - 1, bytes.fromhex(snapshot.chain))
    if after is not None and before != after:
        what = f"goes on from seq {before.seq}, the segment before it ends with {after.seq}"
        if before.seq == after.seq:
            what = f"goes on from another chain than the segment before it has at seq {after.seq}"
        raise RecordDamaged(file, what, ASK)
    frames = list(good_frames(buffer, HEADER_SIZE, before))
    if not frames:
        raise RecordDamaged(
            file, f"offset {HEADER_SIZE}: the chain of seq {first.seq} is wrong", ASK
        )
    return RecordSegment(file, number, buffer, before, snapshot, frames)


def good_frames(buffer: bytes, at: int, where: ChainPosition) -> Iterator[RecordFrame]:
    """The frames that continue the record from `where`, up to the first that does not."""
    seq, chain = where.seq, where.chain
    while (frame := unpack(buffer, at)) is not None:
        seq += 1
        leaf = sha256(b"\x00" + frame.data).digest()  # inlined leaf_hash() and chained()
        chain = sha256(chain + leaf).digest()
        if frame.seq != seq or frame.before >= seq or frame.chain != chain:
            return
        yield frame
        at = frame.end


def segments(record: Path, start: int | None = None) -> Iterator[RecordSegment]:
    """The segments in order, each validated against the one before; only the last may have a tail.
    Raises RecordDamaged, RecordsMissing."""
    there = [number for number in numbers(record) if start is None or number >= start]
    after: ChainPosition | None = None
    for number in there:
        segment = read_segment(record, number, after)
        if number != there[-1]:
            closed(segment)
        yield segment
        after = segment.after


def closed(segment: RecordSegment) -> None:
    """Raise RecordDamaged if a segment that is followed by another has a tail."""
    tail = segment.tail()
    if tail.verdict is not TailVerdict.CLEAN:
        raise RecordDamaged(segment.file, f"offset {tail.offset}: {in_words(tail, segment)}", ASK)


def in_words(tail: Tail, segment: RecordSegment) -> str:
    last = segment.after.seq
    if tail.verdict is TailVerdict.MISSING:
        what = f"records after seq {last} cannot be read from there on"
        return f"{what}; those up to seq {tail.needed} at least were acknowledged"
    if tail.verdict is TailVerdict.TORN:
        return f"a write after seq {last} was cut off; {tail.size} bytes of it are left"
    return f"{tail.size} bytes after seq {last} that no cut-off write explains"


def missing(segment: RecordSegment, tail: Tail) -> RecordsMissing:
    what = f"offset {tail.offset}: {in_words(tail, segment)}"
    return RecordsMissing(segment.file, what, ASK)


def records(record: Path, start: int | None = None) -> Iterator[tuple[RecordPosition, Record]]:
    """Every record in order, from segment `start` on."""
    for segment in segments(record, start):
        for frame in segment.frames:
            yield segment.place(frame), record_of(segment.file, frame)
