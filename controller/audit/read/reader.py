"""Reads segments: the good frames by seq and chain, their records, the tail, the tree."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from controller.audit.errors import (
    RecordDamaged,
    RecordProblem,
    RecordsMissing,
    UnexplainedTail,
    cannot_read,
)
from controller.audit.format.merkle import Hash, Span, blocks, folded
from controller.audit.format.records import (
    ChainPosition,
    Record,
    RecordPosition,
    Snapshot,
    read_record,
)
from controller.audit.format.segments import (
    HEAD,
    HEAD_SIZE,
    HEADER_SIZE,
    MAX_BYTES,
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

    @property
    def tree(self) -> Span:
        """The tree before its first record, from its snapshot."""
        hashes = [bytes.fromhex(one) for one in self.snapshot.frontier]
        return Span.of(0, self.before.seq, hashes)

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


def read_part(file: Path, offset: int, size: int) -> bytes:
    """Read at most `size` bytes of a segment. Raises RecordDamaged, CannotWrite."""
    try:
        with open_segment(file) as opened:
            return os.pread(opened.fileno(), size, offset)
    except OSError as problem:
        raise cannot_read(file, problem) from None


def record_of(file: Path, frame: RecordFrame) -> Record:
    """Decode the record of a frame. Raises RecordDamaged."""
    try:
        record = read_record(frame.data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise RecordDamaged(
            file, f"offset {frame.offset}, seq {frame.seq}: is no record: {problem}", ASK
        ) from None
    if record.seq != frame.seq:
        raise RecordDamaged(
            file,
            f"offset {frame.offset}: the frame says seq {frame.seq}, the record {record.seq}",
            ASK,
        )
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


def tail_problem(segment: RecordSegment, tail: Tail, todo: str = ASK) -> RecordProblem:
    """The error for a tail that no incomplete write explains; `todo` if nothing is missing."""
    what = f"offset {tail.offset}: {in_words(tail, segment)}"
    if tail.verdict is TailVerdict.MISSING:
        return RecordsMissing(segment.file, what, ASK)
    return UnexplainedTail(segment.file, what, todo)


def in_words(tail: Tail, segment: RecordSegment) -> str:
    last = segment.after.seq
    if tail.verdict is TailVerdict.MISSING:
        what = f"records after seq {last} cannot be read from there on"
        return f"{what}; those up to seq {tail.needed} at least were acknowledged"
    if tail.verdict is TailVerdict.TORN:
        return f"a write after seq {last} was cut off; {tail.size} bytes of it are left"
    return f"{tail.size} bytes after seq {last} that no cut-off write explains"


def records(record: Path, start: int | None = None) -> Iterator[tuple[RecordPosition, Record]]:
    """Every record in order, from segment `start` on."""
    for segment in segments(record, start):
        for frame in segment.frames:
            yield segment.place(frame), record_of(segment.file, frame)


_BEFORE_CRC: Final = 4
_BEHIND_CRC: Final = 8


class ScannedFrames(NamedTuple):
    """The good frames of a segment."""

    records: list[bytes]
    offsets: list[int]
    """Where the frames begin."""
    leaves: list[Hash]
    where: ChainPosition
    """The position after the last of them."""
    end: int
    """The offset after the last of them."""
    back: list[int]
    """Indexes of frames that state a lower durable seq than the frame before."""
    durable: tuple[int, int]
    """The durable seq that the first and the last of them state."""
    why: str
    """Why the bytes at `end` are not the next frame; empty if they are zero."""


def scan(buffer: bytes, at: int, where: ChainPosition) -> ScannedFrames:
    """Scan the frames from `at` that continue the record from `where`.

    Does what good_frames() does in a single loop that also keeps the leaf hashes: two hashes, one
    CRC and one comparison of chains per record.
    """
    seq, chain = where.seq, where.chain
    why = ""
    records: list[bytes] = []
    offsets: list[int] = []
    leaves: list[Hash] = []
    durable: list[int] = []
    heads: dict[int, int] = {}
    """Cache: the CRC of each length field, which starts the CRC of a frame."""
    unpack_head, sha, crc = HEAD.unpack_from, sha256, crc32
    view = memoryview(buffer)
    last, room = len(buffer), len(buffer) - HEAD_SIZE
    while at <= room:
        size, check, said, before, link = unpack_head(buffer, at)
        start = at + HEAD_SIZE
        end = start + size
        head = heads.get(size)
        if head is None:
            if not 0 < size <= MAX_BYTES:
                why = f"a frame of {size} bytes, not 1 to {MAX_BYTES}"
                break
            head = heads[size] = crc(view[at : at + _BEFORE_CRC])
        if end > last or crc(view[at + _BEHIND_CRC : end], head) != check:
            why = "it runs past the segment's end" if end > last else "its CRC is false"
            break
        record = buffer[start:end]
        leaf = sha(b"\x00" + record).digest()
        linked = sha(chain + leaf).digest()
        if said != seq + 1 or link != linked or before > seq:
            why = _why(said, before, seq)
            break
        seq, chain = said, linked
        records.append(record)
        offsets.append(at)
        leaves.append(leaf)
        durable.append(before)
        at = end
    else:
        why = "something stands where no frame has room"
    if not buffer[at:].rstrip(b"\0"):
        why = ""
    ends = (durable[0], durable[-1]) if durable else (0, 0)
    return ScannedFrames(
        records, offsets, leaves, ChainPosition(seq, chain), at, _back(durable), ends, why
    )


def _back(durable: list[int]) -> list[int]:
    if durable == sorted(durable):
        return []
    return [at for at, (one, next_) in enumerate(pairwise(durable), 1) if next_ < one]


def _why(said: int, before: int, seq: int) -> str:
    if said != seq + 1:
        return f"its frame has seq {said} where {seq + 1} is due"
    if before > seq:
        return f"it says that {before} was on the disk before it was written"
    return "its chain does not go on from the record before it"


class PartOfTree:
    """The tree over a record's leaves, with the leaves of one segment only.

    Built level by level from the complete subtrees of the leaves before.
    """

    def __init__(self, before: Span, leaves: list[Hash]) -> None:
        """`before`: the tree over the leaves before these."""
        base = self.base = before.end
        self.size = base + len(leaves)
        self._frontier = {
            level: top for (_, level), top in zip(blocks(0, base), before.hashes, strict=True)
        }
        self._levels: list[list[Hash]] = []
        self._begins: list[int] = []
        """For each level, the index of its first known node."""
        level = leaves
        at = base
        while True:
            if at & 1:
                at -= 1
                level = [self._frontier[len(self._levels)], *level]
            self._levels.append(level)
            self._begins.append(at)
            if at == 0 and len(level) < 2:
                break
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
            at >>= 1

    def frontier(self, size: int) -> tuple[Hash, ...]:
        """The roots of the complete subtrees over `size` leaves, largest first."""
        if not self.base <= size <= self.size:
            raise ValueError(f"{size} leaves; allowed: {self.base} to {self.size}")
        return tuple(self.top(begin, level) for begin, level in blocks(0, size))

    def root(self, size: int) -> Hash:
        return folded(self.frontier(size))

    def top(self, begin: int, level: int) -> Hash:
        """The root of a complete subtree that ends in this segment or is one before it."""
        index = begin >> level
        if level < len(self._levels) and index >= self._begins[level]:
            return self._levels[level][index - self._begins[level]]
        return self._frontier[level]


def roots(segment: PartOfTree, sizes: Sequence[int]) -> dict[int, Hash]:
    """The roots at those sizes (sorted) that end in this segment."""
    first, last = bisect_left(sizes, segment.base), bisect_left(sizes, segment.size + 1)
    return {size: segment.root(size) for size in sizes[first:last]}
