"""Checks of the people file: permissions, validity, history, and enough people to play."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    warning,
    wrong,
)
from controller.doctor.permissions import (
    OTHERS,
    WRITING,
    PathStatus,
    belongs_to_others,
    path_status,
)
from controller.people import SECONDS, HouseRole, People, PeopleFile, Person, history_differences
from drivers.keys import KeyProblem, path_exists, same_person

_FIRST: Final[dict[HouseRole, str]] = {"dealer": "D", "floor": "F"}
"""Prefixes of suggested badges."""
_MAX_SHOWN: Final = 5
_ASK: Final = (
    "ask the people who are named there, and the users who may write in that directory; changes "
    "are made with `holecard people`, which records them; or restore both files from a backup"
)


def people_place(case: DoctorCase) -> CheckFindings:
    """Only the user may change or replace the people file."""
    place = case.people
    return found(str(place), [*_folder(case, place), *_own(case, place)])


def people_file(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The people file exists and is valid, with its key."""
    file = PeopleFile(case.people, case.keys)
    try:
        people = file.read()
    except KeyProblem as problem:
        return _solution(case, file, problem)
    here = [one for one in people.every if not one.disabled]
    gone = len(people.every) - len(here)
    return found(f"{len(here)} people" + (f", and {gone} disabled" if gone else ""))


def _folder(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    """Users who may write in the directory could replace the file."""
    there = path_status(place.parent)
    if isinstance(there, DoctorProblem):
        yield there
    elif isinstance(there, PathStatus):
        if there.has(WRITING) and there.shared:
            what = f"others may replace {place}: {there.place} is a shared directory"
            yield wrong(what, mend=f"name a directory of its own in {case.file} at [people]")
        elif there.has(WRITING):
            what = f"others may replace {place}: {there.place} has mode {there.mode}"
            yield wrong(what, line("chmod", "go-w", there.place))
        if there.about.st_uid not in (case.machine.uid, 0):
            yield belongs_to_others(case, there)


def _own(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    history = place.with_name(f"{place.name}.history.jsonl")
    every = [one for one in map(path_status, (place, history)) if one is not None]
    yield from (one for one in every if isinstance(one, DoctorProblem))
    files = [one for one in every if isinstance(one, PathStatus) and not one.directory]
    yield from (
        belongs_to_others(case, one) for one in files if one.about.st_uid != case.machine.uid
    )
    touched = [one for one in files if one.has(OTHERS)]
    if touched:
        bits = ", ".join(f"{one.place} (mode {one.mode})" for one in touched)
        yield wrong(
            f"others may access {bits}", line("chmod", "600", *(one.place for one in touched))
        )


def _solution(case: DoctorCase, file: PeopleFile, problem: KeyProblem) -> DoctorProblem:
    what = f"{problem.where}: {problem.what}"
    if not _exists(file.file):
        return wrong(what, case.ours(*file.beginning))
    if not _exists(file.key_file):
        return wrong(what, mend="restore it from its backup; without it every PIN must be reset")
    return wrong(what, mend=problem.allowed or "restore the file from its backup")


def _exists(place: Path) -> bool:
    try:
        return path_exists(place)
    except KeyProblem:
        return True


def history_agrees(case: DoctorCase) -> CheckFindings:
    """The people file agrees with its history."""
    file = PeopleFile(case.people, case.keys)
    every = history_differences(file, file.read())
    more = len(every) - _MAX_SHOWN
    shown = [*every[:_MAX_SHOWN], *([f"and {more} more like that"] if more > 0 else [])]
    return found(str(file.history_file), [warning(one, mend=_ASK) for one in shown])


# --- enough people ----------------------------------------------------------------------------


def enough_people(case: DoctorCase) -> CheckFindings:
    """There is a dealer, a floor, and a second person for acts of two people."""
    file = PeopleFile(case.people, case.keys)
    people = file.read()
    here = [one for one in people.every if not one.disabled]
    problems = [
        wrong(f"no enabled person is {role}", _added(case, file, people, role))
        for role in _FIRST
        if not any(role in one.roles for one in here)
    ]
    floor = [one for one in here if "floor" in one.roles]
    if not problems and not _second(floor, here):
        problems.append(
            wrong(
                f"only {floor[0].name} can act where two people must, one of them floor",
                _added(case, file, people, "floor"),
            )
        )
    return found(", ".join(f"{_count(here, role)} {role}" for role in _FIRST), problems)


def _second(floor: Iterable[Person], here: Iterable[Person]) -> bool:
    """Whether two different people can act, independent of their badges."""
    seconds = [one for one in here if set(one.roles) & set(SECONDS)]
    return any(not same_person(one.name, other.name) for one in floor for other in seconds)


def _count(people: Iterable[Person], role: HouseRole) -> int:
    return sum(role in one.roles for one in people)


def _added(case: DoctorCase, file: PeopleFile, people: People, role: HouseRole) -> str:
    """A command that adds a person, and asks for the name."""
    number = 1
    while people.find(f"{_FIRST[role]}-{number}") is not None:
        number += 1
    add = ("people", "add", f"{_FIRST[role]}-{number}", "--roles", role, *file.options)
    question = shlex.quote(f"Name of the {role}: ")
    return f'printf %s {question} && read -r NAME && {case.ours(*add)} --name "$NAME"'
