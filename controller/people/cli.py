"""`holecard people`: badges, names, roles and PINs of the people of a house."""

from __future__ import annotations

import argparse
import getpass
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

from msgspec.structs import replace

from controller import terminal
from controller.errors import UsageProblem, printable
from controller.people import pins
from controller.people.directory import PLACE, PeopleFile, people_place
from controller.people.history import history_differences
from controller.people.person import ROLES, ChangeKind, HouseRole, People, Person, check_roles
from controller.people.pins import (
    ALLOWED,
    BADGE_ALLOWED,
    MOST,
    BadPin,
    CannotHash,
    check_pin,
    is_badge,
)
from controller.terminal import (
    PromptCancelled,
    at_terminal,
    keys_directory_of,
    show,
    usage_errors,
    utc_now,
)
from drivers.keys import ALLOWED as NAME_ALLOWED
from drivers.keys import PLACE as KEYS
from drivers.keys import BadName, name_of, same_person

EXIT_NO: Final = 1
OPTION: Final = "--pin-fd"
PLACES: Final = f"""\
The people lie in the file of --file, else of ${PLACE}, else in ~/.config/holecard/people.json.
The key that their PINs go through is people.key in the directory of --keys, else of ${KEYS},
else in ~/.config/holecard/keys. Both must be yours and closed to others. A running table sees a
change at the next sign-in. Every change stands in a history file beside the people.
"""
PIN: Final = f"""\
At a terminal what is missing is asked for, a PIN twice and without being shown. In a script the
PIN comes from an open file descriptor: {OPTION} 3 3< file. It is never an argument.
A PIN has {pins.ALLOWED}, and is none of those that anybody tries first.
"""
CODES: Final = "Exit codes: 0 done; 1 not done; 2 wrong arguments, file, key or PIN.\n"
EXAMPLES: Final = f"""\
examples:
  holecard people init
  holecard people add F-2 --name "Bo Chan" --roles floor
  holecard people list
  holecard people roles F-2 floor,dealer --by "Ann Lee" --and "Cy Moss"
  holecard people reset F-2 {OPTION} 3 --by Ann --and Cy 3< pin
  holecard people disable F-2

roles: {", ".join(ROLES)}. A badge is a name, and no secret.

{PIN}
{PLACES}
{CODES}"""
_BACKUP: Final = "Keep a backup of {file}: without it no PIN fits any more, and each is set anew."


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    people = subparsers.add_parser(
        "people",
        help="keep the people of a house",
        description="Keeps badges, names, roles and PINs of the people of a house.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = people.add_subparsers(metavar="COMMAND", required=True)
    _command(
        commands,
        "init",
        "make a file without people, and the key",
        init,
        "init --file run/people.json",
    )
    _command(commands, "list", "list the people", list_people, "list --json")
    adding = _command(
        commands,
        "add",
        "add somebody",
        add,
        'add D-17 --name "Ann Lee" --roles dealer',
        f'add D-17 --name "Ann Lee" --roles dealer --by Bo --and Cy {OPTION} 3 3< pin',
    )
    changing = [
        _command(commands, "disable", "let somebody sign in no more", disable, "disable D-17"),
        _command(commands, "enable", "let them sign in again", enable, "enable D-17"),
        _command(commands, "reset", "give somebody another PIN", reset, "reset D-17"),
        _command(commands, "roles", "give somebody other roles", roles, "roles D-17 dealer,floor"),
    ]
    for parser in (adding, *changing):
        parser.add_argument("badge", metavar="BADGE", help="whose it is")
        parser.add_argument("--by", metavar="NAME", help="who does it")
        parser.add_argument("--and", dest="second", metavar="NAME", help="the second person")
    adding.add_argument("--name", metavar="NAME", required=True, help="as the record is to say it")
    adding.add_argument("--roles", metavar="ROLES", required=True, help=",".join(ROLES))
    changing[-1].add_argument("roles", metavar="ROLES", help=",".join(ROLES))
    for parser in (adding, changing[2]):
        parser.add_argument(
            OPTION,
            metavar="N",
            type=_descriptor,
            help="read the PIN from this open file descriptor",
        )


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help_: str,
    func: Callable[[argparse.Namespace], int],
    *examples: str,
) -> argparse.ArgumentParser:
    lines = "\n".join(f"  holecard people {one}" for one in (name, *examples) if one)
    parser = commands.add_parser(
        name,
        help=help_,
        description=f"{help_[0].upper()}{help_[1:]}.",
        epilog="\n".join(("examples:", lines, "", PIN, PLACES, CODES)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--file", metavar="FILE", help="file of the people")
    parser.add_argument("--keys", metavar="DIR", help="directory of the keys")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=func)
    return parser


def _descriptor(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a file descriptor")
    return int(text)


# --- without changing anybody -----------------------------------------------------------------


def init(args: argparse.Namespace) -> int:
    """Make the key and a file without people."""
    with usage_errors():
        file = _file(args)
        made = _begin(file)
    show(
        args,
        {"file": str(file.file), "key": str(file.key_file), "fingerprint": made.key.fingerprint},
        f"made {file.file}\nits key: {file.key_file}, fingerprint {made.key.fingerprint}",
    )
    return 0


def list_people(args: argparse.Namespace) -> int:
    """Print who there is. No verifier is shown."""
    with usage_errors():
        file = _file(args)
        people = file.read()
        every, odd = people.every, history_differences(file, people)
    found = {"file": str(file.file), "people": [_as_json(one) for one in every], "odd": odd}
    for words in odd:
        print(f"care: {printable(words)}", file=sys.stderr)
    show(args, found, "\n".join(map(_line, every)) or "nobody is there yet")
    return 0


# --- one person -------------------------------------------------------------------------------


def add(args: argparse.Namespace) -> int:
    """Add somebody."""
    return _unless_given_up("added", lambda: _add(args))


def _add(args: argparse.Namespace) -> int:
    badge = _badge(args.badge)
    name = _name(args.name)
    given = _roles("--roles", args.roles)
    file = _file(args)
    if file.exists():
        _refuse_taken(file.read(), badge)
    check_source(args.pin_fd)
    by = terminal.two_people(args)
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
                f"{one.name} has the badge {one.badge} too: where it takes two people, both badges "
                "are one person",
                file=sys.stderr,
            )
    return _done(args, people, badge, "added")


def disable(args: argparse.Namespace) -> int:
    """Nobody signs in with this badge any more. It stays in the file: the record names it."""

    def refuse(person: Person) -> None:
        if person.disabled:
            raise UsageProblem("BADGE", f"{person.badge} is disabled already")

    return _change(args, "disabled", refuse, lambda _: _set(disabled=True))


def enable(args: argparse.Namespace) -> int:
    """With the PIN that they had."""

    def refuse(person: Person) -> None:
        if not person.disabled:
            raise UsageProblem("BADGE", f"{person.badge} is not disabled")

    return _change(args, "enabled", refuse, lambda _: _set(disabled=False))


def roles(args: argparse.Namespace) -> int:
    """Other roles instead of those that they had."""
    given = _roles("ROLES", args.roles)

    def refuse(person: Person) -> None:
        if person.roles == given:
            raise UsageProblem("ROLES", f"{person.badge} has these roles already")

    return _change(args, "roles", refuse, lambda _: _set(roles=given))


def reset(args: argparse.Namespace) -> int:
    """Another PIN."""

    def refuse(_: Person) -> None:
        check_source(args.pin_fd)

    def ask(person: Person) -> Make:
        pin = new_pin(args.pin_fd, person.badge)

        def make(people: People, now: Person) -> Person:
            if people.key.fits(now.verifier(), now.badge, pin):
                raise UsageProblem("PIN", f"{now.badge} has this one already", "another one")
            return replace(now, pin=_verifier(people, now.badge, pin))

        return make

    return _change(args, "PIN reset", refuse, ask)


Make: TypeAlias = Callable[[People, Person], Person]


def _set(**fields: object) -> Make:
    return lambda _, person: replace(person, **fields)


def _change(
    args: argparse.Namespace,
    what: ChangeKind,
    refuse: Callable[[Person], None],
    ask: Callable[[Person], Make],
) -> int:
    """Somebody who is there is changed, when two people say so. What can be refused before anything
    is asked, is; and again when the file is ours alone."""

    def work() -> int:
        file = _file(args)
        before = file.read()
        person = _known(before, args.badge)
        refuse(person)
        by = terminal.two_people(args)
        make = ask(person)

        def change(people: People) -> Person:
            now = _known(people, person.badge)
            refuse(now)
            return make(people, now)

        after = file.change(what, person.badge, change, by, utc_now())
        if before.floor() and not after.floor():
            print("nobody is left who can act as floor", file=sys.stderr)
        return _done(args, after, person.badge, _DONE[what])

    return _unless_given_up(_DONE[what], work)


_DONE: Final[dict[ChangeKind, str]] = {
    "added": "added",
    "disabled": "disabled",
    "enabled": "enabled",
    "PIN reset": "reset",
    "roles": "changed",
}


def _unless_given_up(what: str, work: Callable[[], int]) -> int:
    """Whoever leaves a question unanswered is told that nothing was done."""
    try:
        with usage_errors():
            return work()
    except terminal.PromptCancelled:
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
        raise UsageProblem("BADGE", f"nobody has {badge!r}", "one of `holecard people list`")
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
        raise UsageProblem("BADGE", f"{text!r} is no badge", BADGE_ALLOWED)
    return text


def _name(text: str) -> str:
    try:
        return name_of(text)
    except BadName:
        raise UsageProblem("--name", f"{text!r} is no name", NAME_ALLOWED) from None


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


_SLIPS: Final = 3
"""How often somebody may mistype a new PIN."""
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends a program at once, unless it is told otherwise."""
_DESCRIPTOR: Final = "the number of an open descriptor with the PIN in its first line"


def check_source(descriptor: int | None) -> None:
    """Refuse, before anything is asked, where no PIN can come from."""
    if descriptor is None:
        if not at_terminal():
            what = "is missing: nobody is there to type a PIN"
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
    """A PIN that will do for this badge. GivenUp where nobody answers."""
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
    """The first line there. What is no text is refused like any other that cannot do."""
    data = b""
    try:
        while b"\n" not in data and len(data) <= MOST + 2:
            part = os.read(descriptor, 64)
            if not part:
                break
            data += part
    except OSError as problem:
        what = f"{descriptor} cannot be read: {(problem.strerror or 'no reason given').lower()}"
        raise UsageProblem(OPTION, what, _DESCRIPTOR) from None
    line = data.partition(b"\n")[0].removesuffix(b"\r")
    if not line:
        raise UsageProblem(OPTION, f"{descriptor} holds no PIN", ALLOWED)
    return line.decode("ascii", "replace")


def _typed(badge: str) -> str:
    for _ in range(_SLIPS):
        try:
            pin = _hidden(f"PIN for {badge} (not shown): ")
            check_pin(pin, badge)
            again = _hidden("The same again (not shown): ")
        except BadPin as problem:
            print(f"{problem}; try again", file=sys.stderr)
        except UnicodeDecodeError:
            print("that is no text; try again", file=sys.stderr)
        else:
            if again == pin:
                return pin
            print("those are two different PINs; try again", file=sys.stderr)
    raise UsageProblem("PIN", f"none in {_SLIPS} tries", ALLOWED)


def _hidden(question: str) -> str:
    """What somebody types without seeing it. GivenUp at the input's end."""
    try:
        with _put_right(), warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(question)
    except EOFError:
        raise PromptCancelled from None
    except getpass.GetPassWarning:
        what = "this terminal would show it"
        raise UsageProblem("PIN", what, f"another terminal, or {OPTION}") from None


@contextmanager
def _put_right() -> Iterator[None]:
    """A terminal that shows nothing shows again when somebody ends us meanwhile."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)  # as a shell tells it

    ours = [number for number in _ENDS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
