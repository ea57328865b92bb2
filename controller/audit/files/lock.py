"""The writer lock of a record, and cleanup after a failed start."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.errors import CannotWrite, InUse, NoRecord, cannot_read
from controller.audit.files.disk import DIRECTORY_MODE, MODE

LOCK: Final = "lock"
_TRIES: Final = 16
"""Retries while other starts fail and remove their lock file; more than can happen."""
_MOST_ORIGIN: Final = 1024
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
    return os.pread(fd, _MOST_ORIGIN, 0).decode("utf-8", "replace")


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
            todo = "make that directory, or name another one"
            raise NoRecord(record, what, todo) from None
        todo = f"make {record.parent} first"
        raise NoRecord(record, "there is no directory to make it in", todo) from None
    except OSError as problem:
        remove_created(made)
        what = f"cannot be written: {problem.strerror}"
        raise CannotWrite(record, what, "let the controller's user write there") from None


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
            todo = "one controller writes a record: stop the other one"
            raise InUse(record, "another process writes it", todo) from None
        raise CannotWrite(record, f"cannot be locked: {problem.strerror}", "mend that") from None
