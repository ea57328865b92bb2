"""Fast scan of a segment's frames, for verification of a whole record.

Does what `reader.good_frames` does in a single loop that also keeps the leaf hashes: two hashes,
one CRC and one comparison of chains per record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

from controller.audit.format.merkle import Hash, blocks, folded
from controller.audit.format.records import ChainPosition
from controller.audit.format.segments import HEAD, HEAD_SIZE, MOST_BYTES

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
    """Scan the frames from `at` that continue the record from `where`."""
    seq, chain = where.seq, where.chain
    why = ""
    records: list[bytes] = []
    offsets: list[int] = []
    leaves: list[Hash] = []
    durable: list[int] = []
    heads: dict[int, int] = {}
    """Cache: the CRC of each length field, which starts the CRC of a frame."""
    unpack, sha, crc = HEAD.unpack_from, sha256, crc32
    view = memoryview(buffer)
    last, room = len(buffer), len(buffer) - HEAD_SIZE
    while at <= room:
        size, check, said, before, link = unpack(buffer, at)
        start = at + HEAD_SIZE
        end = start + size
        head = heads.get(size)
        if head is None:
            if not 0 < size <= MOST_BYTES:
                why = f"a frame of {size} bytes, not 1 to {MOST_BYTES}"
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

    def __init__(self, base: int, frontier: Sequence[Hash], leaves: list[Hash]) -> None:
        """`frontier`: the roots of the complete subtrees over the first `base` leaves."""
        self.base = base
        self.size = base + len(leaves)
        self._frontier = {
            level: top for (_, level), top in zip(blocks(0, base), frontier, strict=True)
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
        return tuple(self._top(begin >> level, level) for begin, level in blocks(0, size))

    def root(self, size: int) -> Hash:
        return folded(self.frontier(size))

    def _top(self, index: int, level: int) -> Hash:
        if level < len(self._levels) and index >= self._begins[level]:
            return self._levels[level][index - self._begins[level]]
        return self._frontier[level]


def roots(segment: PartOfTree, sizes: Sequence[int]) -> dict[int, Hash]:
    """The roots at those sizes (sorted) that end in this segment."""
    first, last = bisect_left(sizes, segment.base), bisect_left(sizes, segment.size + 1)
    return {size: segment.root(size) for size in sizes[first:last]}
