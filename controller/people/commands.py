"""Runs the commands of `holecard people`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from controller.commands import show
from controller.errors import EXIT_NO, UsageProblem, printable
from controller.people import pins
from controller.people.cli import OPTION
from controller.people.directory import PeopleFile, history_differences, people_place
from controller.people.person import ROLES, ChangeKind, HouseRole, People, Person, check_roles
from controller.people.pins import (
    ALLOWED,
    BADGE_ALLOWED,
    MAX_DIGITS,
    BadPin,
    CannotHash,
    check_pin,
    is_badge,
)
from controller.terminal import (
    PromptCancelled,
    at_terminal,
    echo_restored,
    keys_directory_of,
    two_people,
    usage_errors,
    utc_now,
)
from drivers.keys import ALLOWED as NAME_ALLOWED
from drivers.keys import BadName, name_of, same_person

Change: TypeAlias = Callable[[People, Person], Person]
"""Makes the changed person from the current people and the current person."""
_BACKUP: Final = "Keep a backup of {file}: without it no PIN is valid, and each must be reset."
_DONE: Final[dict[ChangeKind, str]] = {
    "added": "added",
    "disabled": "disabled",
    "enabled": "enabled",
    "PIN reset": "reset",
    "roles": "changed",
}


def run_init(args: argparse.Namespace) -> int:
    """Create the key and a people file without people."""
    with usage_errors():
        file = _file(args)
        made = _begin(file)
    show(
        args,
        {"file": str(file.file), "key": str(file.key_file), "fingerprint": made.key.fingerprint},
        f"made {file.file}\nits key: {file.key_file}, fingerprint {made.key.fingerprint}",
    )
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print the people, without their PIN verifiers."""
    with usage_errors():
        file = _file(args)
        people = file.read()
        every, odd = people.every, history_differences(file, people)
    found = {"file": str(file.file), "people": [_as_json(one) for one in every], "odd": odd}
    for words in odd:
        print(f"warning: {printable(words)}", file=sys.stderr)
    show(args, found, "\n".join(map(_line, every)) or "no people yet")
    return 0


def run_add(args: argparse.Namespace) -> int:
    """Add a person."""
    return _run("added", lambda: _add(args))


def _add(args: argparse.Namespace) -> int:
    badge = _badge(args.badge)
    name = _name(args.name)
    given = _roles("--roles", args.roles)
    file = _file(args)
    if file.exists():
        _refuse_taken(file.read(), badge)
    check_source(args.pin_fd)
    by = two_people(args)
    pin = new_pin(args.pin_fd, badge)
    if not file.exists():
        _begin(file)

    def made(people: People) -> Person:
        _refuse_taken(people, badge)
        return Person(badge, name, given, False, _verifier(people, badge, pin))

    people = file.change("added", badge, made, by, utc_now())
    for one in people.every:
        if same_person(one.name, name) and one.badge != badge:
            print(
                f"{one.name} has the badge {one.badge} too: for dual control both count as one "
                "person",
                file=sys.stderr,
            )
    return _done(args, people, badge, "added")


def run_disable(args: argparse.Namespace) -> int:
    """Disable a badge. The person stays in the file, since the record names them."""
    return _set_disabled(args, "disabled", "is disabled already", disabled=True)


def run_enable(args: argparse.Namespace) -> int:
    """Enable a disabled badge, with its old PIN."""
    return _set_disabled(args, "enabled", "is not disabled", disabled=False)


def _set_disabled(
    args: argparse.Namespace, what: ChangeKind, already: str, *, disabled: bool
) -> int:
    def refuse(person: Person) -> None:
        if person.disabled is disabled:
            raise UsageProblem("BADGE", f"{person.badge} {already}")

    return _change(args, what, refuse, lambda _: _set(disabled=disabled))


def run_roles(args: argparse.Namespace) -> int:
    """Replace the roles of a person."""
    given = _roles("ROLES", args.roles)

    def refuse(person: Person) -> None:
        if person.roles == given:
            raise UsageProblem("ROLES", f"{person.badge} has these roles already")

    return _change(args, "roles", refuse, lambda _: _set(roles=given))


def run_reset(args: argparse.Namespace) -> int:
    """Replace the PIN of a person."""

    def refuse(_: Person) -> None:
        check_source(args.pin_fd)

    def ask(person: Person) -> Change:
        pin = new_pin(args.pin_fd, person.badge)

        def make(people: People, now: Person) -> Person:
            if people.key.fits(now.verifier(), now.badge, pin):
                raise UsageProblem("PIN", f"{now.badge} has this one already", "another one")
            return replace(now, pin=_verifier(people, now.badge, pin))

        return make

    return _change(args, "PIN reset", refuse, ask)


def _set(**fields: object) -> Change:
    return lambda _, person: replace(person, **fields)


def _change(
    args: argparse.Namespace,
    what: ChangeKind,
    refuse: Callable[[Person], None],
    ask: Callable[[Person], Change],
) -> int:
    """Change a person, with two approvers. `refuse` is called before anything is asked, and again
    under the lock of the file."""

    def work() -> int:
        file = _file(args)
        before = file.read()
        person = _known(before, args.badge)
        refuse(person)
        by = two_people(args)
        make = ask(person)

        def change(people: People) -> Person:
            now = _known(people, person.badge)
            refuse(now)
            return make(people, now)

        after = file.change(what, person.badge, change, by, utc_now())
        if before.floor() and not after.floor():
            print("no enabled badge has the role floor any more", file=sys.stderr)
        return _done(args, after, person.badge, _DONE[what])

    return _run(_DONE[what], work)


def _run(what: str, work: Callable[[], int]) -> int:
    """Run `work`; returns EXIT_NO if the user cancels a question."""
    try:
        with usage_errors():
            return work()
    except PromptCancelled:
        print(f"\nnot {what}: the question was not answered", file=sys.stderr)
        return EXIT_NO
    except CannotHash as problem:
        raise UsageProblem("PIN", str(problem)) from None


def _begin(file: PeopleFile) -> People:
    made = file.begin()
    print(_BACKUP.format(file=file.key_file), file=sys.stderr)
    return made


def _verifier(people: People, badge: str, pin: str) -> str:
    return str(people.key.verifier(badge, pin, pins.COST))


def _known(people: People, badge: str) -> Person:
    found = people.find(badge)
    if found is None:
        raise UsageProblem("BADGE", f"no person has {badge!r}", "one of `holecard people list`")
    return found


def _refuse_taken(people: People, badge: str) -> None:
    found = people.find(badge)
    if found is not None:
        raise UsageProblem("BADGE", f"{found.badge} is {found.name}'s", "another badge")


# --- arguments and answers --------------------------------------------------------------------


def _file(args: argparse.Namespace) -> PeopleFile:
    if args.file == "":
        raise UsageProblem("--file", "is empty", "a file")
    keys = keys_directory_of(args)
    return PeopleFile(people_place(None if args.file is None else Path(args.file)), keys)


def _badge(text: str) -> str:
    if not is_badge(text):
        raise UsageProblem("BADGE", f"{text!r} is not a badge", BADGE_ALLOWED)
    return text


def _name(text: str) -> str:
    try:
        return name_of(text)
    except BadName:
        raise UsageProblem("--name", f"{text!r} is not a name", NAME_ALLOWED) from None


def _roles(where: str, text: str) -> tuple[HouseRole, ...]:
    named = [word.strip() for word in text.split(",")]
    try:
        return check_roles(tuple(word for word in named if word))
    except ValueError as problem:
        raise UsageProblem(where, str(problem), ", ".join(ROLES)) from None


def _done(args: argparse.Namespace, people: People, badge: str, what: str) -> int:
    person = _known(people, badge)
    show(args, _as_json(person), f"{what}: {_line(person)}")
    return 0


def _line(one: Person) -> str:
    line = f"{one.badge:<12} {one.name:<24} {', '.join(one.roles)}"
    return f"{line} (disabled)" if one.disabled else line


def _as_json(one: Person) -> dict[str, object]:
    return {
        "badge": one.badge,
        "name": one.name,
        "roles": list(one.roles),
        "disabled": one.disabled,
    }


_MAX_TRIES: Final = 3
"""How often a new PIN may be mistyped."""
_DESCRIPTOR: Final = "the number of an open descriptor with the PIN in its first line"


def check_source(descriptor: int | None) -> None:
    """Raises UsageProblem if no PIN can be read, before anything is asked."""
    if descriptor is None:
        if not at_terminal():
            what = "is missing, and there is no terminal to ask for a PIN"
            raise UsageProblem(OPTION, what, _DESCRIPTOR)
        return
    try:
        os.fstat(descriptor)
    except (OSError, OverflowError):
        raise UsageProblem(OPTION, f"{descriptor} is not open", _DESCRIPTOR) from None
    if os.isatty(descriptor):
        what = f"{descriptor} is a terminal, which shows what is typed"
        raise UsageProblem(OPTION, what, f"no {OPTION}: then the PIN is asked for and not shown")


def new_pin(descriptor: int | None, badge: str) -> str:
    """Ask for a PIN, or read it from `descriptor`. Raises UsageProblem, PromptCancelled."""
    check_source(descriptor)
    if descriptor is None:
        return _typed(badge)
    pin = _pin_line(descriptor)
    try:
        check_pin(pin, badge)
    except BadPin as problem:
        raise UsageProblem(OPTION, problem.what, problem.allowed) from None
    return pin


def _pin_line(descriptor: int) -> str:
    """The first line of the descriptor; bytes that are not ASCII make it an invalid PIN."""
    data = b""
    try:
        while b"\n" not in data and len(data) <= MAX_DIGITS + 2:
            part = os.read(descriptor, 64)
            if not part:
                break
            data += part
    except OSError as problem:
        what = f"{descriptor} cannot be read: {(problem.strerror or 'no reason given').lower()}"
        raise UsageProblem(OPTION, what, _DESCRIPTOR) from None
    line = data.partition(b"\n")[0].removesuffix(b"\r")
    if not line:
        raise UsageProblem(OPTION, f"{descriptor} contains no PIN", ALLOWED)
    return line.decode("ascii", "replace")


def _typed(badge: str) -> str:
    for _ in range(_MAX_TRIES):
        try:
            pin = _hidden(f"PIN for {badge} (not shown): ")
            check_pin(pin, badge)
            again = _hidden("The same again (not shown): ")
        except BadPin as problem:
            print(f"{problem}; try again", file=sys.stderr)
        except UnicodeDecodeError:
            print("that is not text; try again", file=sys.stderr)
        else:
            if again == pin:
                return pin
            print("the two PINs differ; try again", file=sys.stderr)
    raise UsageProblem("PIN", f"none in {_MAX_TRIES} tries", ALLOWED)


def _hidden(question: str) -> str:
    """Input that is not shown while it is typed. Raises PromptCancelled at end of input."""
    try:
        with echo_restored(), warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(question)
    except EOFError:
        raise PromptCancelled from None
    except getpass.GetPassWarning:
        what = "this terminal would show it"
        raise UsageProblem("PIN", what, f"another terminal, or {OPTION}") from None
