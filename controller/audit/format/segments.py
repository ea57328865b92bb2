"""Segment files: names, headers, the frames in them, listing, and preallocation; see FORMAT.md."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct as Layout
from typing import BinaryIO, Final
from zlib import crc32

from msgspec import Struct

from controller.audit.errors import NoRecord, RecordDamaged, cannot_read
from controller.audit.files import Disk, NotRegularFile, open_regular

DIRECTORY: Final = "segments"
SPARE: Final = "spare.seg"
SIZE: Final = 8 * 1024 * 1024
SMALLEST: Final = 4096
LARGEST: Final = 1 << 30
_MAGIC: Final = b"holecard log 1\n\0"
_HEADER: Final = Layout("<16sII")
HEADER_SIZE: Final = _HEADER.size
NAME: Final = re.compile(r"([0-9]{8})\.seg")
"""File name of a segment; the group is its number."""
_ZEROS: Final = bytes(16 * 1024)
"""Written in small pieces: Linux caches a file in folios as large as its writes, and with folios of
a megabyte each small write and sync takes some microseconds longer."""


def segment_name(number: int) -> str:
    return f"{number:08d}.seg"


def segment_file(record: Path, number: int) -> Path:
    return record / DIRECTORY / segment_name(number)


def spare_file(record: Path) -> Path:
    return record / DIRECTORY / SPARE


def pack_header(number: int, size: int) -> bytes:
    return _HEADER.pack(_MAGIC, number, size)


def read_header(file: Path, data: bytes, number: int, size: int) -> None:
    """Validate the header of segment `number` in a file of `size` bytes. Raises RecordDamaged."""
    if len(data) < HEADER_SIZE or not data.startswith(_MAGIC):
        raise RecordDamaged(file, "is no segment of a record", "put the right file back")
    _, found, room = _HEADER.unpack_from(data)
    if found != number:
        raise RecordDamaged(file, f"is segment {found}, not {number}", "put the right file back")
    if room != size or not SMALLEST <= room <= LARGEST:
        raise RecordDamaged(
            file, f"has {size} bytes, its header says {room}", "put the whole file back"
        )


def open_segment(file: Path) -> BinaryIO:
    """Open a segment for reading. Raises RecordDamaged if it is no regular file, and OSError."""
    try:
        return open_regular(file)
    except NotRegularFile:
        raise RecordDamaged(file, "is no file", "put the right file back") from None


def numbers(record: Path) -> list[int]:
    """The numbers of the existing segments, in order; empty in a record that has none yet.

    Raises NoRecord, or RecordDamaged if a segment is missing.
    """
    place = record / DIRECTORY
    try:
        names = [entry.name for entry in place.iterdir()]
    except FileNotFoundError:
        raise NoRecord(record, "there is no record here", "name its directory") from None
    except NotADirectoryError:
        raise NoRecord(record, "is no directory of a record", "name its directory") from None
    except OSError as problem:
        raise cannot_read(place, problem) from None
    listed = sorted(int(match[1]) for name in names if (match := NAME.fullmatch(name)))
    if not listed:
        return []
    found = list(range(listed[0], listed[-1] + 1))
    for number in sorted(set(found) - set(listed)):
        # Listing a directory that grows may omit existing files.
        if not segment_file(record, number).exists():
            raise RecordDamaged(
                segment_file(record, number), "is missing", "put it back from the archive"
            )
    return found


def make_spare(disk: Disk, record: Path, size: int) -> None:
    """Create the next segment's file, filled with zeros, durably. Idempotent: an incomplete file is
    replaced by the next call. Raises OSError; the space is free again then."""
    file = spare_file(record)
    fd = disk.create(file)
    try:
        try:
            _fill(disk, fd, size)
        finally:
            disk.close(fd)
    except OSError:
        with suppress(OSError):  # the first error is reported
            disk.remove(file)
        raise
    disk.sync_directory(file.parent)


def _fill(disk: Disk, fd: int, size: int) -> None:
    """Fill a file with zeros. Raises OSError."""
    if disk.free_bytes(fd) < size:  # before it takes what others need
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    at = 0
    while at < size:  # a disk may be full all the same
        at += disk.write(fd, _ZEROS[: size - at], at)
    disk.sync(fd)


HEAD: Final = Layout("<IIQQ32s")
"""Length, CRC, seq, durable before, chain."""
_CHECKED: Final = Layout("<IQQ32s")
"""The part of the header that the CRC covers."""
HEAD_SIZE: Final = HEAD.size
MAX_BYTES: Final = 256 * 1024
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
    if not 0 < length <= MAX_BYTES or end > len(buffer):
        return None
    data = bytes(buffer[start:end])
    found = crc32(buffer[offset + 8 : end], crc32(buffer[offset : offset + 4]))
    return RecordFrame(seq, before, chain, data, offset) if found == check else None
