"""Disk operations of the record behind an interface, so that tests can inject faults."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol

PAGE: Final = 4096
MODE: Final = 0o640
"""Group-readable: surveillance reads the record."""
DIRECTORY_MODE: Final = 0o750


class Disk(Protocol):
    """Every operation that a power loss or a full disk can interrupt. All raise OSError."""

    def create(self, file: Path) -> int:
        """Create and open an empty file for writing, replacing an existing one."""

    def open(self, file: Path) -> int:
        """Open an existing file for reading and writing."""

    def write(self, fd: int, data: bytes, offset: int) -> int: ...

    def sync(self, fd: int) -> None:
        """Make the file's bytes and size durable."""

    def close(self, fd: int) -> None: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, file: Path) -> None: ...

    def sync_directory(self, directory: Path) -> None: ...


class RealDisk:
    """The operating system's file operations."""

    def create(self, file: Path) -> int:
        # A new inode: a late writer may still have the old file open.
        with suppress(FileNotFoundError):
            os.unlink(file)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(file, flags, MODE)

    def open(self, file: Path) -> int:
        return os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        os.fdatasync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def remove(self, file: Path) -> None:
        os.unlink(file)

    def sync_directory(self, directory: Path) -> None:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class NotRegularFile(OSError):
    """Not a regular file: reading it could block or never end."""


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file for reading, following links. Never blocks. Raises NotRegularFile and
    other OSErrors."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegularFile(errno.EINVAL, "it is no file", str(file))
    return os.fdopen(fd, "rb")


def read_file(file: Path, most: int) -> bytes:
    """Read at most `most` bytes. Raises NotRegularFile and other OSErrors."""
    with open_regular(file) as opened:
        return opened.read(most)


def write_all(disk: Disk, fd: int, data: bytes, offset: int) -> None:
    """Write all of `data` or raise OSError. A short write is not completed: the reader classifies
    what it left."""
    written = disk.write(fd, data, offset)
    if written != len(data):
        raise OSError(errno.EIO, f"{written} of {len(data)} bytes were written")


class ReadBack:
    """Reads written bytes back with O_DIRECT, so not from the page cache, if the file system
    supports it."""

    def __init__(self, file: Path) -> None:
        self.way: Literal["direct", "cached"] = "direct"
        self._room = mmap.mmap(-1, 16 * PAGE)  # page-aligned, as O_DIRECT requires
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(file, flags | os.O_DIRECT)
        except OSError as refused:
            if refused.errno != errno.EINVAL:
                raise
            self.way = "cached"
            self._fd = os.open(file, flags)

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`; fewer if the file ends before."""
        first = start - start % PAGE
        wanted = -(-(end - first) // PAGE) * PAGE
        if wanted > len(self._room):
            self._room.close()
            self._room = mmap.mmap(-1, wanted)
        if self.way == "cached":
            os.posix_fadvise(self._fd, first, wanted, os.POSIX_FADV_DONTNEED)
        with memoryview(self._room) as room, room[:wanted] as part:
            count = os.preadv(self._fd, [part], first)
        return self._room[start - first : min(end - first, count)]

    def close(self) -> None:
        self._room.close()
        fd, self._fd = self._fd, -1  # closed once: the number may be reused by another file
        if fd >= 0:
            with suppress(OSError):  # opened for reading only
                os.close(fd)
