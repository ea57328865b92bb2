"""Where cases that are made at a table's pages wait to be fetched: a directory beside its record,
for as long as the table is served. They are copies of the record, and lie where it does.
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
"""What comes behind the name of the record."""


@contextmanager
def case_folder(record: Path, where: str) -> Iterator[Path]:
    """A new directory that nobody else reads, and that is gone at the end. UsageProblem, at `where`
    in the table's file."""
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
    """Those of controllers that were killed are gone, as far as they can be. For whoever writes the
    record: then there is no other controller."""
    place = record.resolve()
    with suppress(OSError):
        for one in list(place.parent.iterdir()):
            if one.name.startswith(place.name + NAME) and one.is_dir() and one != ours:
                shutil.rmtree(one, ignore_errors=True)
