"""The access log beside a record: one line for each access from outside the table."""

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

from controller.audit.files import Disk, locked, reporting_write_errors
from controller.commands import real_path

SUFFIX: Final = ".looks.jsonl"
_MODE: Final = 0o660
"""Group-writable: the next reader appends to it too."""
_TODO: Final = "nobody looks without it: let this user write there, or take a copy and look at that"
_FULL: Final = "nobody looks without it: make room, or take a copy elsewhere and look at that"


class AccessEntry(Struct, frozen=True, omit_defaults=True):
    """One access."""

    utc: int
    """Microseconds since 1970."""
    who: str
    """The name that the user gave."""
    account: str
    """The operating system's user name."""
    what: str
    of: str
    """The part of the record."""
    reason: str = ""
    out: str = ""
    seal: str = ""
    """SHA-256 of the exported manifest."""


class AccessLogger(Protocol):
    """Logs an access before it happens; log_access() is one."""

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
    """The access log, beside the record's real directory."""
    place = real_path(record)
    return place.with_name(place.name + SUFFIX)


def account() -> str:
    """The user name of this process."""
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
    """Append an access durably. Raises CannotWrite, InUse; the access must not happen then."""
    user = account()
    made = AccessEntry(time.time_ns() // 1000, who or user, user, what, of, reason, out, seal)
    file = access_log_file(record)
    with reporting_write_errors(file, _TODO, full=_FULL):
        _append(file, msgspec.json.encode(made) + b"\n")
    return made


def _append(file: Path, line: bytes) -> None:
    with locked(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, _MODE) as fd:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"  # an incomplete write
        data = b"\n" * torn + line
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
            Disk().sync_directory(file.parent)
        except OSError:
            with suppress(OSError):  # the first error is reported
                os.ftruncate(fd, size)
            raise
