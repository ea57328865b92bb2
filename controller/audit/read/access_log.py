"""Who looked at a record from outside of the table: one line for each look, in a file beside it."""

from __future__ import annotations

import errno
import os
import pwd
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from controller.audit.files import lock_with_timeout, reporting_write_errors

SUFFIX: Final = ".looks.jsonl"
_MODE: Final = 0o660
"""Whoever of the group looks next writes it too."""
_TODO: Final = "nobody looks without it: let this user write there, or take a copy and look at that"
_FULL: Final = "nobody looks without it: make room, or take a copy elsewhere and look at that"


class AccessEntry(Struct, frozen=True, omit_defaults=True):
    """Somebody looked."""

    utc: int
    """Microseconds since 1970."""
    who: str
    """As they say."""
    account: str
    """As the machine says."""
    what: str
    of: str
    """Which part of the record."""
    reason: str = ""
    out: str = ""
    seal: str = ""
    """SHA-256 of the manifest of what was exported."""


class AccessLogger(Protocol):
    """Whoever writes down that somebody looks, before they do: as look() does."""

    def __call__(
        self,
        record: Path,
        what: str,
        of: str,
        *,
        who: str,
        reason: str,
        out: str,
        seal: str,
    ) -> object: ...


def access_log_file(record: Path) -> Path:
    """Beside the record, whatever it is called by."""
    place = record.resolve()
    return place.with_name(place.name + SUFFIX)


def account() -> str:
    """The user that this process runs as."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def log_access(
    record: Path,
    what: str,
    of: str,
    *,
    who: str = "",
    reason: str = "",
    out: str = "",
    seal: str = "",
) -> AccessEntry:
    """On the disk on return. CannotWrite, InUse: then nobody may look."""
    user = account()
    utc = time.time_ns() // 1000
    made = AccessEntry(utc, who or user, user, what, of, reason, out, seal)
    file = access_log_file(record)
    with reporting_write_errors(file, _TODO, full=_FULL):
        _append(file, msgspec.json.encode(made) + b"\n")
    return made


def _append(file: Path, line: bytes) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(file, flags, _MODE)
    try:
        lock_with_timeout(fd, file)
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # power went while it was written
        data = b"\n" * torn + line
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
            _sync(file.parent)
        except OSError:
            with suppress(OSError):  # the first problem counts
                os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def _sync(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
