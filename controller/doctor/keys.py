"""Checks of the record's keys and of the host's key for its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from controller.audit.errors import NoRecord, RecordProblem
from controller.audit.format.segments import numbers
from controller.audit.keys import (
    list_keys,
    load_hole_key,
    load_surveillance_public,
    load_table_private,
    misplaced_keys,
)
from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    warning,
    wrong,
)
from controller.table.loop import load_keys
from drivers.keys import HOST, KeyProblem, KeyStore, path_exists

_BACKUP: Final = "restore it from its backup: the record was created with it, and needs it"
_DAMAGED: Final = "restore both of its files from their backup"
_BROUGHT: Final = (
    "surveillance creates it on its own machine (holecard keys new surveillance) and brings "
    "surveillance.pub only; in the directory where that is"
)


def keys_there(case: DoctorCase) -> CheckFindings:
    """All keys exist and are valid, and each private key matches its public key."""
    place = case.keys
    problems = [
        *_problems(case, place, "table"),
        *_problems(case, place, "hole"),
        *_problems(case, place, "surveillance"),
        *_problems(case, place, "host"),
    ]
    if not problems:
        problems = [*_tried(case, place), *_out_of_place(place)]
    return found("of the table, of hole cards, of surveillance, of this host", problems)


_READ: Final[dict[str, Callable[[Path], object]]] = {
    "table": load_table_private,
    "hole": load_hole_key,
    "surveillance": load_surveillance_public,
    "host": lambda place: KeyStore(place).existing_own(),
}
_FILES: Final = {
    "table": ("table.key", "table.pub"),
    "hole": ("hole.key",),
    "surveillance": ("surveillance.pub",),
    "host": (HOST,),
}


def _problems(case: DoctorCase, place: Path, role: str) -> Iterator[DoctorProblem]:
    try:
        _READ[role](place)
    except KeyProblem as problem:
        yield _solution(case, place, role, problem)


def _solution(case: DoctorCase, place: Path, role: str, problem: KeyProblem) -> DoctorProblem:
    what = f"{problem.where}: {problem.what}"
    if role == "surveillance":
        owner = () if case.machine.login else ("-o", case.machine.user)
        brought = line("install", *owner, "-m", "600", "surveillance.pub", f"{place}/")
        return wrong(what, brought, mend=_BROUGHT)
    if not _absent(place, role):
        return wrong(what, mend=_DAMAGED)
    if role == "host":
        if _paired(place):
            return wrong(what, mend="restore it from its backup: devices are paired with it")
        return wrong(what, case.ours("devices", "init", "--keys", place))
    if begun(case):
        return wrong(what, mend=_BACKUP)
    return wrong(what, case.ours("keys", "new", role, "--dir", place))


def _absent(place: Path, role: str) -> bool:
    """Whether no file of the key exists, so that it can be created."""
    try:
        return not any(path_exists(place / name) for name in _FILES[role])
    except KeyProblem:
        return False


def _paired(place: Path) -> bool:
    try:
        return bool(KeyStore(place).devices())
    except KeyProblem:
        return True


def begun(case: DoctorCase) -> bool:
    """Returns whether a record exists, intact or not."""
    record = case.equipment.record
    if record is None:
        return False
    try:
        return bool(numbers(record.directory))
    except NoRecord:
        return False
    except RecordProblem:  # a record with a missing segment
        return True


def _tried(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    """Surveillance's key can seal cards."""
    try:
        load_keys(place)
    except KeyProblem as problem:
        yield _solution(case, place, "surveillance", problem)


def _out_of_place(place: Path) -> Iterator[DoctorProblem]:
    for what in misplaced_keys(list_keys(place)):
        role = what.partition(".")[0]
        yield warning(
            what,
            mend=f"move {place / f'{role}.key'} to that machine",
        )
