"""The folder in which a simulated device lives: its files are whole or not there, and private."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct


class PlaceProblem(Exception):
    """What lies in a device's folder cannot be used: where, what, and what is allowed."""

    def __init__(self, where: Path | str, what: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; {allowed}")
        self.where = str(where)
        self.what = what
        self.allowed = allowed


class Place(Struct, frozen=True):
    """What is where. `kept` is the core's, `mechanism` that of the cards and buttons."""

    folder: Path

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


def make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, data: bytes, *, sync: bool) -> None:
    """The file holds `data` or what it held before, whenever the power goes."""
    fresh = path.with_name(f"{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)
    if sync:
        _sync_folder(path.parent)


def read_whole(path: Path) -> bytes:
    """What the file holds; nothing if it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
