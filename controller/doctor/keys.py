"""The keys: those of the record, and the host's towards its devices."""

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
    skipped,
    warning,
    wrong,
)
from controller.table.running import load_keys
from drivers.keys import HOST, KeyProblem, KeyStore, path_exists

_BACKUP: Final = "put it back from its backup: a record was begun with it, and no other one will do"
_DAMAGED: Final = "put both of its files back from their backup, as they were made"
_BROUGHT: Final = (
    "surveillance makes it on a machine of its own (holecard keys new surveillance) and brings "
    "surveillance.pub, and nothing else; where it was brought to"
)


def keys_there(case: DoctorCase) -> CheckFindings:
    """Present, of the right kind, and each secret part belongs to its public one."""
    place = case.equipment.keys
    if place is None:
        return skipped("no [keys]")
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
    "host": lambda place: KeyStore(place).standing_own(),
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
        yield _mended(case, place, role, problem)


def _mended(case: DoctorCase, place: Path, role: str, problem: KeyProblem) -> DoctorProblem:
    what = f"{problem.where}: {problem.what}"
    if role == "surveillance":
        owner = () if case.machine.login else ("-o", case.machine.user)
        brought = line("install", *owner, "-m", "600", "surveillance.pub", f"{place}/")
        return wrong(what, brought, mend=_BROUGHT)
    if not _absent(place, role):
        return wrong(what, mend=_DAMAGED)
    if role == "host":
        if _paired(place):
            return wrong(what, mend="put it back from its backup: devices are paired with it")
        return wrong(what, case.ours("devices", "init", "--keys", place))
    if begun(case):
        return wrong(what, mend=_BACKUP)
    return wrong(what, case.ours("keys", "new", role, "--dir", place))


def _absent(place: Path, role: str) -> bool:
    """Nothing of the key is there: then one can be made."""
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
    """Whether there is a record already, whole or not."""
    record = case.equipment.record
    if record is None:
        return False
    try:
        return bool(numbers(record.directory))
    except NoRecord:
        return False
    except RecordProblem:  # something is there, and one of its segments is missing
        return True


def _tried(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    """That cards can be sealed to surveillance's key is found out before there is one."""
    try:
        load_keys(place)
    except KeyProblem as problem:
        yield _mended(case, place, "surveillance", problem)


def _out_of_place(place: Path) -> Iterator[DoctorProblem]:
    for what in misplaced_keys(list_keys(place)):
        role = what.partition(".")[0]
        yield warning(
            what,
            mend=f"take {place / f'{role}.key'} to that machine, and remove it here",
        )
