"""The folder in which a simulated device lives: its files are whole or not there, and private.

What the system refuses is an OSError that names the file: a disk that is full says so in a write,
and a write alone does not know what it was for.
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
    """What lies in a device's folder cannot be used: where, what, and what is allowed."""

    def __init__(self, where: Path | str, what: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; allowed: {allowed}")
        self.where = str(where)
        self.what = what
        self.allowed = allowed


class DeviceFolder(Struct, frozen=True):
    """What is where. `kept` is the core's, `mechanism` that of the cards and buttons."""

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
        """Whatever a device has there."""
        return self.identity, self.host, self.ring, self.ring_copy, self.kept, self.mechanism


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError in here is told as one of this file."""
    try:
        yield
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise OSError(problem.errno, why, str(path)) from problem


def make_folder(folder: Path) -> list[Path]:
    """Make it, and what is missing above it. What was made, the innermost first: all or nothing."""
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        unmake(missing)
        raise
    return missing


def unmake(folders: list[Path]) -> None:
    """Remove what make_folder() has made, as far as it is still empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def write_whole(path: Path, data: bytes, *, sync: bool, once: bool = False) -> None:
    """The file holds `data` or what it held before, whenever the power goes, and also where the
    disk is full. With `once` it must not be there yet: FileExistsError."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new" if once else f"{path.name}.new")
    with naming(path):
        try:
            _fill(fresh, data, sync=sync)
            if once:
                os.link(fresh, path)  # unlike a rename it never takes the place of another's
                fresh.unlink()
            else:
                fresh.replace(path)
        except OSError:
            with suppress(OSError):  # where nothing can be removed either, the first error counts
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
    """Put `data` into the file at this place, all of it, durably with `sync`."""
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


def read_whole(path: Path) -> bytes:
    """What the file holds; nothing if it is not there."""
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
    """One folder of things by name. What was kept is durable when keep() or number() returns."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        make_folder(folder)

    def keep(self, name: str, data: bytes) -> None:
        write_whole(self._path(name, ""), data, sync=self._sync)

    def kept(self, name: str) -> bytes:
        return read_whole(self._path(name, ""))

    def number(self, name: str) -> int:
        """The next number of this name; 1 is the first."""
        number = self.last_number(name) + 1
        self.set_number(name, number)
        return number

    def last_number(self, name: str) -> int:
        path = self._path(name, ".number")
        text = read_whole(path)
        if not text:
            return 0
        try:
            return int(text)
        except ValueError:
            raise FolderProblem(path, "holds no number", "decimal digits") from None

    def set_number(self, name: str, number: int) -> None:
        write_whole(self._path(name, ".number"), b"%d\n" % number, sync=self._sync)

    def _path(self, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name to keep something under: {_NAME.pattern}")
        return self._folder / f"{name}{ending}"
