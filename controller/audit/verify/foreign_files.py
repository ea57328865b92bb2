"""Files in a record's directory that are no part of it: somebody has put them there."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from controller.audit.files import LOCK
from controller.audit.format.segments import DIRECTORY, NAME, SPARE
from controller.audit.log import TAILS
from controller.audit.read.retirements import NAME as NOTE
from controller.audit.read.retirements import RETIRED
from controller.audit.witness import COSIGNED

KEYS: Final = "keys"
"""Demo keys, where a record of scripts has them beside it."""
MAX_LISTED: Final = 20
"""That are told one by one."""
_HERE: Final = re.compile(
    rf"{DIRECTORY}|{TAILS}|{COSIGNED}|{RETIRED}|{LOCK}|{KEYS}|index\.db(-wal|-shm)?"
)
_WITHIN: Final = {
    DIRECTORY: re.compile(rf"{NAME.pattern}|{re.escape(SPARE)}"),
    TAILS: re.compile(r".+\.json(\.new)?"),
    COSIGNED: re.compile(r"(0|[1-9][0-9]{0,17})\.note(\.new)?"),
    RETIRED: re.compile(rf"{NOTE.pattern}(\.new)?"),
}
"""With .new those that are being written, or were when the power went."""


def foreign_files(record: Path, told: Collection[str]) -> Iterator[str]:
    """What is to be said of each, in the order of their names. `told`: the files of `tail` records,
    as they name them."""
    found = [name for name in _names(record) if name not in told]
    yield from (f"{name}: is no part of the record" for name in found[:MAX_LISTED])
    if len(found) > MAX_LISTED:
        yield f"{len(found) - MAX_LISTED} more files that are no part of the record"


def _names(record: Path) -> Iterator[str]:
    yield from (name for name in _listed(record) if not _HERE.fullmatch(name))
    for folder, known in _WITHIN.items():
        listed = _listed(record / folder)
        yield from (f"{folder}/{name}" for name in listed if not known.fullmatch(name))


def _listed(place: Path) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except (FileNotFoundError, NotADirectoryError):
        return []
