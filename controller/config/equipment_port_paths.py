"""Paths of serial ports, as a table file writes them: where they start from, and which are one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_SERIAL: Final = "serial:"
_PATH: Final = re.compile(rf"({_SERIAL}|(?!usb\+))([^:/][^:/]*/(?:.*[^/]))")
"""One that starts at no root, as drivers read it."""


def port_from(folder: Path, port: str) -> str:
    """A serial port's path starts from the folder too, whichever folder the daemon runs in."""
    found = _PATH.fullmatch(port)
    return port if found is None else f"{found[1]}{folder.absolute() / found[2]}"


def same_port(port: str) -> str:
    """The same for each way to write the path of a serial port."""
    path = port.removeprefix(_SERIAL)
    return os.path.normpath(path) if path.startswith("/") else port
