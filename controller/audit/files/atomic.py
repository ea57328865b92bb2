"""Atomic writes, error translation and file locks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.audit.errors import CannotWrite, InUse
from controller.audit.files.disk import DIRECTORY_MODE, Disk, write_all

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
        with contextlib.suppress(OSError):  # the first error is reported
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


def lock_with_timeout(fd: int, place: Path) -> None:
    """Lock `fd` exclusively, retrying for up to WAIT seconds. Closing `fd` releases the lock.
    Raises InUse on timeout and OSError; nothing has been changed then."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                what = f"another command has been writing here for {WAIT:g} s"
                raise InUse(place, what, "see what holds it, then try again") from None
        else:
            return
        time.sleep(_EVERY)
