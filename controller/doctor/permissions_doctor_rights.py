"""The directories of record and keys: whether they are there, and who may touch them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.audit.files.lock import LOCK
from controller.audit.format.segments import DIRECTORY
from controller.doctor.check import Case, Found, Problem, found, line, skipped, warning, wrong
from controller.doctor.permissions import (
    OTHERS,
    USE,
    WRITING,
    Seen,
    belongs_to_others,
    forbidden,
    inside,
    listed,
    making,
    nearest,
    not_a_directory,
    seen,
    strays,
)

_STRANGERS: Final = 0o007
FIRST: Final = frozenset({LOCK, DIRECTORY, "keys"})
"""What may lie in a record's directory before the record does."""
_KEYS: Final = (".key", ".pub", ".json", ".jsonl", ".new")
_BESIDE: Final = frozenset({LOCK, "devices"})


# --- the record's place -----------------------------------------------------------------------


def record_place(case: Case) -> Found:
    """The record's directory, and whatever lies in it."""
    record = case.equipment.record
    if record is None:
        return skipped("no [record]")
    place = record.directory
    there = seen(place)
    if isinstance(there, Problem):
        return found("", [there])
    if there is None:
        return _to_be_made(case, place)
    if not there.directory:
        return found("", [not_a_directory(case, place, "record")])
    if there.shared or _of_something_else(place):
        what = f"{place} is not the record's alone"
        mend = f"name a directory of its own in {case.file} at [record]"
        return found("", [wrong(what, mend=mend)])
    problems = [*_owners(case, there), *_modes(place)]
    if not problems and not case.machine.may(place, USE):
        problems = [forbidden(case, there)]
    return found(f"{place} (mode {there.mode})", problems)


def _to_be_made(case: Case, place: Path) -> Found:
    """What the first start makes, if it finds the directory above."""
    if place.is_symlink():
        to = place.parent / os.readlink(place)
        what = f"{place} is a link to {to}, where nothing is"
        return found("", [wrong(what, making(case, to, "750"))])
    parent = place.parent
    there = seen(parent)
    if isinstance(there, Problem):
        return found("", [there])
    if there is None:
        what = f"{parent}, which is to hold {place.name}, is not there"
        return found("", [wrong(what, making(case, parent, "700"))])
    if not there.directory:
        return found("", [not_a_directory(case, parent, "directory above")])
    if not case.machine.may(parent, USE):
        what = f"{case.machine.user} may not make {place.name} in {parent}"
        return found("", [wrong(what, making(case, place, "750"))])
    return found(f"{place} is made at the first start")


def _of_something_else(place: Path) -> bool:
    """What is done to a record is not done to what is none."""
    return not (place / DIRECTORY).is_dir() and bool(set(os.listdir(place)) - FIRST)


def _owners(case: Case, there: Seen) -> Iterator[Problem]:
    """One user writes the record: what another one has left there stops him."""
    if case.machine.uid not in (there.about.st_uid, 0):
        yield belongs_to_others(case, there)
    yield from strays(case, there, inside(there.place))


def _modes(place: Path) -> Iterator[Problem]:
    """Its group may read: surveillance."""
    own = seen(place)
    every = [*([own] if isinstance(own, Seen) else []), *inside(place)]
    written = [one.place for one in every if one.has(WRITING)]
    if written:
        what = f"others than its owner may change {listed(written)}"
        yield wrong(what, line("chmod", "-R", "go-w", place))
    read = [one.place for one in every if one.has(_STRANGERS & ~WRITING)]
    if read:
        what = f"everybody on this machine may read {listed(read)}"
        yield warning(what, line("chmod", "-R", "o-rwx", place))


# --- the keys' place --------------------------------------------------------------------------


def keys_place(case: Case) -> Found:
    """The directory of the keys, and whatever lies in it: ours alone."""
    place = case.equipment.keys
    if place is None:
        return skipped("no [keys]")
    there = seen(place)
    if isinstance(there, Problem):
        return found("", [there])
    if there is None:
        init = case.ours("devices", "init", "--keys", place)
        above = () if case.machine.may(nearest(place), USE) else (making(case, place, "700"),)
        return found("", [wrong(f"{place} is not there", *above, init)])
    if not there.directory:
        return found("", [not_a_directory(case, place, "directory of keys")])
    names = os.listdir(place) if case.machine.may(place, os.R_OK) else []
    strange = [name for name in names if not _is_key(Path(name))]
    if there.shared or strange:
        what = f"{place} is not the keys' alone" + (f": it holds {min(strange)}" if strange else "")
        mend = f"name a directory of their own in {case.file} at [keys]"
        return found("", [wrong(what, mend=mend)])
    return found(f"{place} (mode {there.mode})", _alone(case, there))


def _is_key(place: Path) -> bool:
    return place.suffix in _KEYS or place.name in _BESIDE


def _alone(case: Case, there: Seen) -> Iterator[Problem]:
    below = inside(there.place)
    if there.about.st_uid != case.machine.uid:
        yield belongs_to_others(case, there)
    yield from strays(case, there, below)
    folders = [one.place for one in (there, *below) if one.directory and one.has(OTHERS)]
    if folders:
        yield wrong(f"others may look into {listed(folders)}", line("chmod", "700", *folders))
    files = [one.place for one in below if not one.directory and one.has(OTHERS)]
    if files:
        yield wrong(f"others may touch {listed(files)}", line("chmod", "600", *files))
