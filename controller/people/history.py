"""Compares the people file with its history, to detect changes by other means.

    for text in history_differences(file, file.read()): ...

A missing history is reported too. The history contains no PINs, so a verifier that was replaced by
hand is not detected.
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
"""Maximum length of a line in bytes."""
_change: Final = msgspec.json.Decoder(Change).decode
_DISABLED: Final = {"added": False, "disabled": True, "enabled": False}


def history_differences(file: PeopleFile, people: People) -> list[str]:
    """The differences between file and history as texts. Raises KeyProblem."""
    if not path_exists(file.history_file):
        gone = f"{file.history_file} is missing: the origin of these people is unknown"
        return [gone] if people.every else []
    changes, strange = _read(file)
    return [*strange, *_compared(people, changes)]


def _read(file: PeopleFile) -> tuple[dict[str, list[Change]], list[str]]:
    """The changes by badge, and a text for each invalid line."""
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
                    strange.append(f"line {number} of {file.history_file} is not a valid change")
                    continue
                changes.setdefault(folded(change.badge), []).append(change)
        except OSError as problem:
            raise key_problem(file.history_file, "cannot be read", problem) from None
    return changes, strange


def _compared(people: People, changes: dict[str, list[Change]]) -> Iterator[str]:
    for one in people.every:
        theirs = changes.pop(folded(one.badge), [])
        if not theirs:
            yield f"{one.badge}, {one.name}, is in the file, but in no line of the history"
            continue
        was, is_ = _made(theirs), (one.name, ", ".join(one.roles), one.disabled)
        if was[:2] != is_[:2] or was[2] not in (None, is_[2]):
            said = f"by the history {_text(*was)}, {_since(theirs)}"
            yield f"{one.badge} is {_text(*is_)} in the file; {said}"
    for theirs in changes.values():
        last = theirs[-1]
        said = f"the history has them, {_since(theirs)}"
        yield f"{last.badge}, {last.name}, is not in the file; {said}"


def _made(changes: list[Change]) -> tuple[str, str, bool | None]:
    """Name, roles, and whether disabled (None if unknown), by the history."""
    known = [_DISABLED[one.what] for one in changes if one.what in _DISABLED]
    last = changes[-1]
    return last.name, ", ".join(last.roles), known[-1] if known else None


def _since(changes: list[Change]) -> str:
    """Time and approvers of the last change by people."""
    by_people = [one for one in changes if one.what != "verifier renewed"]
    last = (by_people or changes)[-1]
    return f"since {last.at}, by {' and '.join(last.by)}"


def _text(name: str, roles: str, disabled: bool | None) -> str:
    return f"{name} ({roles}{', disabled' if disabled else ''})"
