"""The people of the house: whether their file can be used, and whether they are enough to play."""

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
    skipped,
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
"""What badges begin with that we propose."""
_MOST_SHOWN: Final = 5
_ASK: Final = (
    "ask the people who are named there, and whoever may write in that directory; what two people "
    "stand for is done with `holecard people`, which writes it down; or put both back from a backup"
)


def people_place(case: DoctorCase) -> CheckFindings:
    """Nobody else may change the file, or put another one in its place."""
    place = case.equipment.people
    if place is None:
        return skipped("no [people]")
    return found(str(place), [*_folder(case, place), *_own(case, place)])


def people_file(case: DoctorCase) -> CheckFindings:
    """There, with its key, and whole."""
    place, keys = case.equipment.people, case.equipment.keys
    if place is None or keys is None:
        return skipped("no [people] or no [keys]")
    file = PeopleFile(place, keys)
    try:
        people = file.read()
    except KeyProblem as problem:
        return found("", [_mended(case, file, problem)])
    here = [one for one in people.every if not one.disabled]
    gone = len(people.every) - len(here)
    return found(f"{len(here)} people" + (f", and {gone} disabled" if gone else ""))


def _folder(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    """Who may write in it may put another file in the place of ours."""
    there = path_status(place.parent)
    if isinstance(there, DoctorProblem):
        yield there
    elif isinstance(there, PathStatus):
        if there.has(WRITING) and there.shared:
            what = f"others may replace {place}: {there.place} is everybody's"
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
            f"others may touch {bits}", line("chmod", "600", *(one.place for one in touched))
        )


def _mended(case: DoctorCase, file: PeopleFile, problem: KeyProblem) -> DoctorProblem:
    what = f"{problem.where}: {problem.what}"
    if not _exists(file.file):
        return wrong(what, case.ours(*file.beginning))
    if not _exists(file.key_file):
        mend = "put it back from its backup; without it every PIN is to be set anew"
        return wrong(what, mend=mend)
    return wrong(what, mend=problem.allowed or "put the file back from its backup")


def _exists(place: Path) -> bool:
    try:
        return path_exists(place)
    except KeyProblem:
        return True


def history_agrees(case: DoctorCase) -> CheckFindings:
    """Each person is what the history says that people were made, by whom."""
    place, keys = case.equipment.people, case.equipment.keys
    if place is None or keys is None:
        return skipped("no [people] or no [keys]")
    file = PeopleFile(place, keys)
    every = history_differences(file, file.read())
    more = len(every) - _MOST_SHOWN
    shown = [*every[:_MOST_SHOWN], *([f"and {more} more of that"] if more > 0 else [])]
    return found(str(file.history_file), [warning(one, mend=_ASK) for one in shown])


# --- enough of them ---------------------------------------------------------------------------


def enough_people(case: DoctorCase) -> CheckFindings:
    """Somebody deals, somebody rules, and there is another one for what takes two."""
    place, keys = case.equipment.people, case.equipment.keys
    if place is None or keys is None:
        return skipped("no [people] or no [keys]")
    file = PeopleFile(place, keys)
    people = file.read()
    here = [one for one in people.every if not one.disabled]
    problems = [
        wrong(f"nobody who is not disabled is {role}", _added(case, file, people, role))
        for role in _FIRST
        if not any(role in one.roles for one in here)
    ]
    floor = [one for one in here if "floor" in one.roles]
    if not problems and not _second(floor, here):
        what = f"only {floor[0].name} can act where two people must, one of them floor"
        problems.append(wrong(what, _added(case, file, people, "floor")))
    roles = ", ".join(f"{_count(here, role)} {role}" for role in _FIRST)
    return found(roles, problems)


def _second(floor: Iterable[Person], here: Iterable[Person]) -> bool:
    """Whether there are two different people, whatever badges they have."""
    seconds = [one for one in here if set(one.roles) & set(SECONDS)]
    return any(not same_person(one.name, other.name) for one in floor for other in seconds)


def _count(people: Iterable[Person], role: HouseRole) -> int:
    return sum(role in one.roles for one in people)


def _added(case: DoctorCase, file: PeopleFile, people: People, role: HouseRole) -> str:
    """A command that asks for the name, which only people know."""
    number = 1
    while people.find(f"{_FIRST[role]}-{number}") is not None:
        number += 1
    add = ("people", "add", f"{_FIRST[role]}-{number}", "--roles", role, *file.options)
    question = shlex.quote(f"Name of the {role}: ")
    return f'printf %s {question} && read -r NAME && {case.ours(*add)} --name "$NAME"'
