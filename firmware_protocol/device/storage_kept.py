"""Numbers and small things that a device keeps over restarts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from firmware_protocol.device.storage import PlaceProblem, make_folder, read_whole, write_whole

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class Kept:
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
            raise PlaceProblem(path, "holds no number", "decimal digits") from None

    def set_number(self, name: str, number: int) -> None:
        write_whole(self._path(name, ".number"), b"%d\n" % number, sync=self._sync)

    def _path(self, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name to keep something under: {_NAME.pattern}")
        return self._folder / f"{name}{ending}"
