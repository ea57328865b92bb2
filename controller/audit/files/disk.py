"""The few things that the record does to a disk, so that a test can put a failing one here."""

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
"""Its group may read the record: surveillance."""
DIRECTORY_MODE: Final = 0o750


class Disk(Protocol):
    """Every call that a loss of power or a full disk can fall between. All raise OSError."""

    def create(self, file: Path) -> int:
        """A new empty file, opened for writing; one that was there is gone."""

    def open(self, file: Path) -> int:
        """An existing file for reading and writing."""

    def write(self, fd: int, data: bytes, offset: int) -> int: ...

    def sync(self, fd: int) -> None:
        """The file's bytes and its size are on the disk on return."""

    def close(self, fd: int) -> None: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, file: Path) -> None: ...

    def sync_directory(self, directory: Path) -> None: ...


class RealDisk:
    """The operating system's."""

    def create(self, file: Path) -> int:
        # Never the file that was there: somebody who comes late may write to that one yet.
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
    """It is something else: to read it may take for ever, or have no end."""


def open_regular(file: Path) -> BinaryIO:
    """A file, or one that a link leads to. OSError; NoFile without waiting for anything."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegularFile(errno.EINVAL, "it is no file", str(file))
    return os.fdopen(fd, "rb")


def read_file(file: Path, most: int) -> bytes:
    """So many bytes of it at most. OSError, NoFile."""
    with open_regular(file) as opened:
        return opened.read(most)


def write_all(disk: Disk, fd: int, data: bytes, offset: int) -> None:
    """All of it or an error. A short write is not completed: what it left is for the reader."""
    written = disk.write(fd, data, offset)
    if written != len(data):
        raise OSError(errno.EIO, f"{written} of {len(data)} bytes were written")


class ReadBack:
    """Reads a file's bytes back past the page cache, where its file system can do that."""

    def __init__(self, file: Path) -> None:
        self.way: Literal["direct", "cached"] = "direct"
        self._room = mmap.mmap(-1, 16 * PAGE)  # aligned to a page, as direct reading wants it
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._fd = os.open(file, flags | os.O_DIRECT)
        except OSError as refused:
            if refused.errno != errno.EINVAL:
                raise
            self.way = "cached"
            self._fd = os.open(file, flags)

    def read(self, start: int, end: int) -> bytes:
        """Bytes start to end; fewer where the file ends before."""
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
        fd, self._fd = self._fd, -1  # closed once: then the number may be some other file's
        if fd >= 0:
            with suppress(OSError):  # it was read only
                os.close(fd)
