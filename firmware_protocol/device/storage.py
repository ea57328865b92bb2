"""The folder with the state of a simulated device: private files, written atomically.

Errors of the system are raised as OSError with the name of the file, which the error of a write to
a full disk does not contain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct


class FolderProblem(Exception):
    """A file in the device's folder is unusable: where, what, and what is allowed."""

    def __init__(self, where: Path | str, what: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; allowed: {allowed}")
        self.where = str(where)
        self.what = what
        self.allowed = allowed


class DeviceFolder(Struct, frozen=True):
    """Paths of the files of one device. `kept` has the state of the core, `mechanism` that of the
    cards and buttons."""

    folder: Path
    sync: bool = True
    """Whether a write is durable when it returns; tests do without."""

    @property
    def identity(self) -> Path:
        return self.folder / "identity.toml"

    @property
    def host(self) -> Path:
        return self.folder / "host"

    @property
    def ring(self) -> Path:
        return self.folder / "ring"

    @property
    def ring_copy(self) -> Path:
        return self.folder / "ring.saved"

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    @property
    def mechanism(self) -> Path:
        return self.folder / "mechanism"

    @property
    def all(self) -> tuple[Path, ...]:
        """Every path that a device uses."""
        return self.identity, self.host, self.ring, self.ring_copy, self.kept, self.mechanism


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Raises an OSError of the block again with the name of this file."""
    try:
        yield
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise OSError(problem.errno, why, str(path)) from problem


def make_folder(folder: Path) -> list[Path]:
    """Create the folder and its missing parents. Returns those that were created, the innermost
    first. Nothing is left after an OSError."""
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        remove_folders(missing)
        raise
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Remove the folders that make_folder() created, if they are still empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def write_atomic(path: Path, data: bytes, *, sync: bool, once: bool = False) -> None:
    """Replace the content of the file atomically: after a power cut or on a full disk it has either
    the old or the new content. With `sync` the write is durable. Raises FileExistsError if `once`
    is set and the file exists."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new" if once else f"{path.name}.new")
    with naming(path):
        try:
            _fill(fresh, data, sync=sync)
            if once:
                os.link(fresh, path)  # unlike a rename, it never replaces another file
                fresh.unlink()
            else:
                fresh.replace(path)
        except OSError:
            with suppress(OSError):  # the first error is the one to report
                fresh.unlink()
            raise
        if sync:
            _sync_folder(path.parent)


def _fill(path: Path, data: bytes, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_at(path: Path, data: bytes, at: int, *, sync: bool) -> None:
    """Write all of `data` at offset `at`; durable on return if `sync` is set."""
    with naming(path):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            while data:
                written = os.pwrite(descriptor, data, at)
                data, at = data[written:], at + written
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def read_file(path: Path) -> bytes:
    """Returns the content of the file; b"" if it does not exist."""
    try:
        with naming(path):
            return path.read_bytes()
    except FileNotFoundError:
        return b""


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class StateStore:
    """Values by name in one folder. They are durable when save() or next_number() returns."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        make_folder(folder)

    def save(self, name: str, data: bytes) -> None:
        write_atomic(self._path(name, ""), data, sync=self._sync)

    def load(self, name: str) -> bytes:
        return read_file(self._path(name, ""))

    def next_number(self, name: str) -> int:
        """Count up the number of this name, and return it; the first is 1."""
        number = self.last_number(name) + 1
        self.set_number(name, number)
        return number

    def last_number(self, name: str) -> int:
        path = self._path(name, ".number")
        text = read_file(path)
        if not text:
            return 0
        try:
            return int(text)
        except ValueError:
            raise FolderProblem(path, "holds no number", "decimal digits") from None

    def set_number(self, name: str, number: int) -> None:
        write_atomic(self._path(name, ".number"), b"%d\n" % number, sync=self._sync)

    def _path(self, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a value; allowed: {_NAME.pattern}")
        return self._folder / f"{name}{ending}"
