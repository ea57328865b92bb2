"""The history of the people's file, held against the file: it says what each person was made, and
by whom, so a file that says otherwise was changed by other means.

    for words in unlike(file, file.read()): ...

A history that is gone says so too. PINs stand in no history: a verifier that was put there by hand
is not seen here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import msgspec

from controller.people.directory import PeopleFile
from controller.people.person import Change, People
from controller.people.pins import folded
from drivers.keys import key_problem, open_private, path_exists

_LONGEST: Final = 64 * 1024
"""Bytes of a line that can still be one of ours."""
_change: Final = msgspec.json.Decoder(Change).decode
_DISABLED: Final = {"added": False, "disabled": True, "enabled": False}


def history_differences(file: PeopleFile, people: People) -> list[str]:
    """Where file and history say different things, in words. KeyProblem."""
    if not path_exists(file.history_file):
        gone = f"{file.history_file} is not there: nobody can say who made these people"
        return [gone] if people.every else []
    changes, strange = _read(file)
    return [*strange, *_compared(people, changes)]


def _read(file: PeopleFile) -> tuple[dict[str, list[Change]], list[str]]:
    """What was done to each badge, and the lines that are none of ours."""
    changes: dict[str, list[Change]] = {}
    strange = []
    with (
        open_private(file.history_file, os.O_RDONLY) as descriptor,
        os.fdopen(descriptor, "rb", closefd=False) as lines,
    ):
        number = 0
        try:
            while line := lines.readline(_LONGEST):
                number += 1
                try:
                    change = _change(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    strange.append(f"line {number} of {file.history_file} is no change of people")
                    continue
                changes.setdefault(folded(change.badge), []).append(change)
        except OSError as problem:
            raise key_problem(file.history_file, "cannot be read", problem) from None
    return changes, strange


def _compared(people: People, changes: dict[str, list[Change]]) -> Iterator[str]:
    for one in people.every:
        theirs = changes.pop(folded(one.badge), [])
        if not theirs:
            yield f"{one.badge}, {one.name}, stands in the file; no line of the history does"
            continue
        was, is_ = _made(theirs), (one.name, ", ".join(one.roles), one.disabled)
        if was[:2] != is_[:2] or was[2] not in (None, is_[2]):
            said = f"by the history {_words(*was)}, {_since(theirs)}"
            yield f"{one.badge} is {_words(*is_)} in the file; {said}"
    for theirs in changes.values():
        last = theirs[-1]
        said = f"the history has them, {_since(theirs)}"
        yield f"{last.badge}, {last.name}, is not in the file; {said}"


def _made(changes: list[Change]) -> tuple[str, str, bool | None]:
    """Name, roles, and whether disabled: None where no line says."""
    known = [_DISABLED[one.what] for one in changes if one.what in _DISABLED]
    last = changes[-1]
    return last.name, ", ".join(last.roles), known[-1] if known else None


def _since(changes: list[Change]) -> str:
    """When they were made what they are, and by whom."""
    by_people = [one for one in changes if one.what != "verifier renewed"]
    last = (by_people or changes)[-1]
    return f"since {last.at}, by {' and '.join(last.by)}"


def _words(name: str, roles: str, disabled: bool | None) -> str:
    return f"{name} ({roles}{', disabled' if disabled else ''})"
