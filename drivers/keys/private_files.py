"""Private files for keys: checks of owner and mode, and atomic writes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NEW: Final = ".new"
_OTHERS: Final = 0o077
_FIXES: Final = {
    errno.ENOSPC: "room on that disk",
    errno.EDQUOT: "room on that disk, or a larger quota",
    errno.EROFS: "a directory that can be written to",
    errno.EACCES: "a directory that this user may use",
    errno.EPERM: "a directory that this user may use",
}
"""How to fix it, by errno."""


class KeyProblem(Exception):
    """A key file cannot be used: which file, why, and what is allowed."""

    def __init__(self, where: str, what: str, allowed: str | None) -> None:
        super().__init__(where, what, allowed)
        self.where = where
        self.what = what
        self.allowed = allowed

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        return text if self.allowed is None else f"{text}; allowed: {self.allowed}"


# --- owner and mode ---------------------------------------------------------------------------


def check_private_directory(place: Path) -> None:
    """Raises KeyProblem unless the directory exists and is private to this user."""
    try:
        found = place.stat()
    except FileNotFoundError:
        raise KeyProblem(
            str(place), "there is no such directory", "`holecard devices init` makes one"
        ) from None
    except OSError as problem:
        raise key_problem(place, "cannot be looked at", problem) from None
    if not stat.S_ISDIR(found.st_mode):
        raise KeyProblem(str(place), "is no directory", "a directory for keys alone")
    _check(place, found, "700")


@contextmanager
def open_private(file: Path, flags: int) -> Iterator[int]:
    """Open a file, created with mode 0600. Raises KeyProblem if it is not private to this user."""
    try:
        descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        raise KeyProblem(str(file), "is missing", "the file from a backup") from None
    except OSError as problem:
        raise key_problem(file, "cannot be opened", problem) from None
    try:
        found = _looked_at(file, descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise KeyProblem(str(file), "is no file", "a file")
        _check(file, found, "600")
        yield descriptor
    finally:
        os.close(descriptor)


def path_exists(place: Path) -> bool:
    """Whether the path exists. Raises KeyProblem if that is unknown: a path without permission
    must not be treated as missing."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise key_problem(place, "cannot be looked at", problem) from None
    return True


def is_same_file(file: Path, descriptor: int) -> bool:
    """Whether the open descriptor is still the file of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(file))
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise key_problem(file, "cannot be looked at", problem) from None


def list_files(place: Path, suffix: str) -> list[Path]:
    """The files with this suffix in this directory, by name."""
    try:
        names = sorted(os.listdir(place))
    except OSError as problem:
        raise key_problem(place, "cannot be looked into", problem) from None
    return [place / name for name in names if name.endswith(suffix)]


def _looked_at(file: Path, descriptor: int) -> os.stat_result:
    try:
        return os.fstat(descriptor)
    except OSError as problem:
        raise key_problem(file, "cannot be looked at", problem) from None


def _check(place: Path, found: os.stat_result, mode: str) -> None:
    if found.st_uid != os.geteuid():
        raise KeyProblem(
            str(place),
            f"belongs to the user with number {found.st_uid}, not to us ({os.geteuid()})",
            f"to run as that user, or: chown {os.geteuid()} {place}",
        )
    if found.st_mode & _OTHERS:
        raise KeyProblem(
            str(place),
            f"others may touch it (mode {stat.S_IMODE(found.st_mode):o})",
            f"mode {mode}: chmod {mode} {place}",
        )


# --- writing ----------------------------------------------------------------------------------


def make_private_directory(place: Path) -> None:
    """Create the directory durably, unless it exists."""
    try:
        place.mkdir(mode=0o700)
        _sync_directory(place.parent)
    except FileExistsError:
        check_private_directory(place)
    except OSError as problem:
        raise key_problem(place, "cannot be made", problem) from None


def write_private(file: Path, data: bytes, *, once: bool = False) -> None:
    """Write the file atomically and durably. With `once`, an existing file is not replaced."""
    with private_file_written(file, data, once=once):
        pass


@contextmanager
def private_file_written(file: Path, data: bytes, *, once: bool = False) -> Iterator[None]:
    """As write_private(). The block runs when the bytes are on the disk, before they become the
    file. If the block or the write fails, nothing is left of them."""
    new = file.with_name(file.name + _NEW)
    try:
        with _failing(file):
            new.unlink(missing_ok=True)  # left by an interrupted write; the caller holds the lock
            _fill(new, data)
        yield
        with _failing(file):
            if once:
                _link(new, file)
            else:
                new.replace(file)
            _sync_directory(file.parent)
    finally:
        with suppress(OSError):  # the first error is raised
            new.unlink(missing_ok=True)


def append_line(file: Path, line: bytes) -> None:
    """Append a line durably and atomically. A truncated line before it is ended first."""
    with open_private(file, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor, _failing(file):
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            _write_all(descriptor, b"\n" * torn + line)
            os.fsync(descriptor)
            _sync_directory(file.parent)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise


def remove_file(file: Path) -> None:
    """Remove the file, durably."""
    try:
        file.unlink()
        _sync_directory(file.parent)
    except OSError as problem:
        raise key_problem(file, "cannot be removed", problem) from None


def check_free_space(file: Path, size: int) -> None:
    """Raises KeyProblem if a file of this size cannot be written there. Leaves no file."""
    try:
        write_private(file, os.urandom(size))  # not compressible
    except KeyProblem:
        with suppress(OSError):
            file.unlink(missing_ok=True)
        raise
    remove_file(file)


def key_problem(place: Path, what: str, problem: OSError) -> KeyProblem:
    reason = (problem.strerror or type(problem).__name__).lower()
    return KeyProblem(str(place), f"{what}: {reason}", _FIXES.get(problem.errno or 0))


@contextmanager
def _failing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise key_problem(file, "cannot be written", problem) from None


def _fill(new: Path, data: bytes) -> None:
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(new: Path, file: Path) -> None:
    try:
        os.link(new, file)  # unlike a rename it never replaces an existing key
    except FileExistsError:
        pass
    finally:
        new.unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_directory(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
