"""Frames: the encoding of one record in a segment. No I/O; see FORMAT.md."""

from __future__ import annotations

from hashlib import sha256
from struct import Struct as Layout
from typing import Final
from zlib import crc32

from msgspec import Struct

HEAD: Final = Layout("<IIQQ32s")
"""Length, CRC, seq, durable before, chain."""
_CHECKED: Final = Layout("<IQQ32s")
"""The part of the header that the CRC covers."""
HEAD_SIZE: Final = HEAD.size
MOST_BYTES: Final = 256 * 1024
"""Maximum size of a record in bytes."""
_CHAIN: Final = b"holecard-record/1\n"


def chain_start(origin: str) -> bytes:
    """The chain before the first record."""
    return sha256(_CHAIN + origin.encode()).digest()


def chained(chain: bytes, leaf: bytes) -> bytes:
    return sha256(chain + leaf).digest()


def pack(seq: int, before: int, chain: bytes, data: bytes) -> bytes:
    size = len(data)
    check = crc32(data, crc32(_CHECKED.pack(size, seq, before, chain)))
    return HEAD.pack(size, check, seq, before, chain) + data


class RecordFrame(Struct, frozen=True, gc=False):
    seq: int
    before: int
    """The highest seq that was known to be durable when this frame was written."""
    chain: bytes
    data: bytes
    offset: int

    @property
    def end(self) -> int:
        return self.offset + HEAD_SIZE + len(self.data)


def unpack(buffer: bytes | memoryview, offset: int) -> RecordFrame | None:
    """The frame at `offset` if it is complete and its CRC matches, else None."""
    if offset + HEAD_SIZE > len(buffer):
        return None
    length, check, seq, before, chain = HEAD.unpack_from(buffer, offset)
    start = offset + HEAD_SIZE
    end = start + length
    if not 0 < length <= MOST_BYTES or end > len(buffer):
        return None
    data = bytes(buffer[start:end])
    found = crc32(buffer[offset + 8 : end], crc32(buffer[offset : offset + 4]))
    return RecordFrame(seq, before, chain, data, offset) if found == check else None
