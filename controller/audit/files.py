"""File access of the record: disk operations that tests can replace, atomic writes, locks."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from controller.audit.errors import CannotWrite, InUse, NoRecord, cannot_read, disk_fails

PAGE: Final = 4096
MODE: Final = 0o640
"""Group-readable: surveillance reads the record."""
DIRECTORY_MODE: Final = 0o750


class Disk:
    """Every operation that a power loss or a full disk can interrupt. All raise OSError.

    Tests derive disks that fail from it.
    """

    def create(self, file: Path) -> int:
        """Create and open an empty file for writing, replacing an existing one."""
        # A new inode: a late writer may still have the old file open.
        with suppress(FileNotFoundError):
            os.unlink(file)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(file, flags, MODE)

    def open(self, file: Path) -> int:
        """Open an existing file for reading and writing."""
        return os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Make the file's bytes and size durable."""
        os.fdatasync(fd)

    def drop_cached(self, file: Path) -> None:
        """Have a file read from the disk, not from the page cache, which keeps what a failed sync
        did not write. What a killed process has written is made durable before."""
        with open_regular(file) as opened:
            os.fdatasync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def free_bytes(self, fd: int) -> int:
        """Bytes that this user may still write to the file's disk; very many if it cannot say."""
        about = os.fstatvfs(fd)
        return about.f_bavail * about.f_frsize if about.f_blocks else sys.maxsize

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


NEW: Final = ".new"
"""Suffix of the temporary file of an atomic write."""


def write_atomically(disk: Disk, file: Path, data: bytes) -> None:
    """Replace `file` atomically and durably. Raises OSError; `file` is unchanged then, and the
    temporary file is removed."""
    new = file.with_name(file.name + NEW)
    try:
        fd = disk.create(new)
        try:
            write_all(disk, fd, data, 0)
            disk.sync(fd)
        finally:
            disk.close(fd)
        disk.rename(new, file)
    except OSError:
        with suppress(OSError):  # the first error is reported
            disk.remove(new)
        raise
    disk.sync_directory(file.parent)


def make_directory(disk: Disk, place: Path) -> None:
    """Create a directory durably. Raises OSError."""
    if not place.is_dir():
        place.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        disk.sync_directory(place.parent)


@contextmanager
def reporting_write_errors(place: Path, todo: str, *, full: str = "") -> Iterator[None]:
    """Raise CannotWrite for an OSError in the block; `full` replaces `todo` if the disk is full."""
    try:
        yield
    except OSError as problem:
        what = f"cannot be written: {(problem.strerror or str(problem)).lower()}"
        no_room = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CannotWrite(place, what, full if full and no_room else todo) from problem


WAIT: Final = 10.0
"""Lock timeout in seconds; a command holds the lock for a fraction of a second."""
_EVERY: Final = 0.02


@contextmanager
def locked(place: Path, flags: int, mode: int = MODE) -> Iterator[int]:
    """Open and lock a file or directory exclusively, retrying for up to WAIT seconds. Raises InUse
    on timeout and OSError; nothing has been changed then."""
    fd = os.open(place, flags | os.O_CLOEXEC, mode)
    try:
        _lock_with_timeout(fd, place)
        yield fd
    finally:
        os.close(fd)


def _lock_with_timeout(fd: int, place: Path) -> None:
    deadline = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise InUse(
                    place,
                    f"another command has been writing here for {WAIT:g} s",
                    "see what holds it, then try again",
                ) from None
        else:
            return
        time.sleep(_EVERY)


LOCK: Final = "lock"
_TRIES: Final = 16
"""Retries while other starts fail and remove their lock file; more than can happen."""
_MAX_ORIGIN_BYTES: Final = 1024
_OPEN: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class WriterLock(NamedTuple):
    """A held lock; closing the descriptor releases it."""

    fd: int
    made: tuple[Path, ...]
    """The paths that acquiring the lock has created."""


def acquire_writer_lock(record: Path) -> WriterLock:
    """Acquire the writer lock, creating the directory if missing. Raises NoRecord, InUse or
    CannotWrite; nothing has been created then."""
    for _ in range(_TRIES):
        found = _opened(record)
        try:
            _lock(record, found.fd)
            # A failed start may have removed the file since: a lock on a removed file excludes no
            # process.
            if _is_still(record / LOCK, found.fd):
                return found
        except InUse:
            release_lock(found.fd)
            raise
        except BaseException:
            remove_created(found.made)
            release_lock(found.fd)
            raise
        release_lock(found.fd)
    raise InUse(record, "it is being opened again and again", "stop whoever does that")


def remove_created(made: tuple[Path, ...]) -> None:
    """Remove created paths if they are empty. The caller holds the lock."""
    for path in reversed(made):
        with suppress(OSError):  # what remains is empty and harmless
            if path.name == LOCK:
                path.unlink()
            else:
                path.rmdir()


def release_lock(fd: int) -> None:
    """Close the lock file, if any. The caller must forget `fd`: its number may be reused."""
    if fd >= 0:
        with suppress(OSError):  # all important writes were synced
            os.close(fd)


def stored_origin(fd: int) -> str:
    """The origin in the lock file, empty if the record has no segment yet. Raises OSError."""
    return os.pread(fd, _MAX_ORIGIN_BYTES, 0).decode("utf-8", "replace")


def store_origin(fd: int, origin: str) -> None:
    """Store durably in the lock file that the record has segments, so that their loss is detected.
    Raises OSError."""
    if stored_origin(fd) == origin:
        return
    os.ftruncate(fd, 0)
    os.pwrite(fd, origin.encode(), 0)
    os.fdatasync(fd)


def _opened(record: Path) -> WriterLock:
    made: tuple[Path, ...] = ()
    try:
        with suppress(FileExistsError):
            record.mkdir(mode=DIRECTORY_MODE)
            made = (record,)
        file = record / LOCK
        try:
            fd = os.open(file, _OPEN | os.O_CREAT | os.O_EXCL, MODE)
            return WriterLock(fd, (*made, file))
        except FileExistsError:
            return WriterLock(os.open(file, _OPEN | os.O_CREAT, MODE), made)
    except NotADirectoryError:
        raise NoRecord(record, "is no directory", "name a record's directory") from None
    except FileNotFoundError:
        if record.is_symlink():
            what = f"is a link to {os.readlink(record)}, where nothing is"
            raise NoRecord(record, what, "make that directory, or name another one") from None
        raise NoRecord(
            record, "there is no directory to make it in", f"make {record.parent} first"
        ) from None
    except OSError as problem:
        remove_created(made)
        raise disk_fails(record, problem) or CannotWrite(
            record,
            f"cannot be written: {problem.strerror}",
            "let the controller's user write there",
        ) from None


def _is_still(file: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(file))
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise cannot_read(file, problem) from None


def _lock(record: Path, fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise InUse(
                record,
                "another process writes it",
                "one controller writes a record: stop the other one",
            ) from None
        raise CannotWrite(record, f"cannot be locked: {problem.strerror}", "mend that") from None
