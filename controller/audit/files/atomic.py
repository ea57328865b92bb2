"""Files that are there whole or not at all, whenever power goes."""

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
"""Behind the name of a file that is being written."""


def write_atomically(disk: Disk, file: Path, data: bytes) -> None:
    """The file holds these bytes on return, on the disk; until then what it held before. OSError,
    and then nothing is left of them."""
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
        with contextlib.suppress(OSError):  # the first problem counts
            disk.remove(new)
        raise
    disk.sync_directory(file.parent)


def make_directory(disk: Disk, place: Path) -> None:
    """It is there on return, and on the disk. OSError."""
    if not place.is_dir():
        place.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        disk.sync_directory(place.parent)


@contextmanager
def reporting_write_errors(place: Path, todo: str, *, full: str = "") -> Iterator[None]:
    """What the operating system refuses there as a problem that says where. `full`: what to do
    where there is no room."""
    try:
        yield
    except OSError as problem:
        what = f"cannot be written: {(problem.strerror or str(problem)).lower()}"
        no_room = problem.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CannotWrite(place, what, full if full and no_room else todo) from problem


WAIT: Final = 10.0
"""Seconds that a command waits for the one before it, which needs a moment."""
_EVERY: Final = 0.02


def lock_with_timeout(fd: int, place: Path) -> None:
    """The lock on `fd` is ours on return; it ends with the file's descriptor. InUse where another
    one has held it for too long: then nothing has changed. OSError."""
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
