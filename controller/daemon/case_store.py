"""The directory of exported cases until they are downloaded, beside the record.

It exists while the table is served. Cases are copies of the record, so they are stored beside it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from controller.errors import UsageProblem

NAME: Final = ".cases-"
"""Suffix of the record's name."""


@contextmanager
def case_folder(record: Path, where: str) -> Iterator[Path]:
    """Create a private directory, and delete it at the end. Raises UsageProblem for `where` in the
    table file."""
    place = record.resolve()
    try:
        made = Path(tempfile.mkdtemp(prefix=place.name + NAME, dir=place.parent))
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        what = f"no directory for cases can be made in {str(place.parent)!a}: {why}"
        allowed = "room there that this user may write to, or no [screens]"
        raise UsageProblem(where, what, allowed) from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def remove_stale(record: Path, ours: Path) -> None:
    """Delete directories of controllers that were killed. The caller must hold the record's lock,
    so that no other controller uses them."""
    place = record.resolve()
    with suppress(OSError):
        for one in list(place.parent.iterdir()):
            if one.name.startswith(place.name + NAME) and one.is_dir() and one != ours:
                shutil.rmtree(one, ignore_errors=True)
