"""Problems of keys and ports as mistakes of the user, and how a paired device is shown."""

from __future__ import annotations

import argparse
import getpass
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from controller.errors import UsageProblem
from drivers.keys import ALLOWED, BadName, KeyProblem, Paired, keys_directory, name_of, same_person
from drivers.ports import AddressProblem, PortRefused
from firmware_protocol.messages.errors import BadLabelCode
from firmware_protocol.tablelink.fingerprints import FINGERPRINT_SIZE, read_label


@contextmanager
def usage_errors() -> Iterator[None]:
    """A problem of keys, ports or addresses as the user's mistake that it is."""
    try:
        yield
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except AddressProblem as problem:
        raise UsageProblem("PORT", problem.what, problem.allowed) from None
    except PortRefused as problem:
        raise UsageProblem("PORT", str(problem)) from None


def keys_directory_of(args: argparse.Namespace) -> Path:
    """The directory of the keys."""
    if args.keys == "":
        raise UsageProblem("--keys", "is empty", "a directory")
    return keys_directory(None if args.keys is None else Path(args.keys))


def utc_now() -> str:
    """Now, as the store keeps it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def device_line(paired: Paired) -> str:
    """A paired device in one line."""
    return (
        f"{paired.device_class.name.lower():<8} {paired.serial:<20} {paired.fingerprint}  "
        f"{paired.maker} {paired.model}, {paired.paired_at} by {' and '.join(paired.by)}"
    )


def device_json(paired: Paired) -> dict[str, object]:
    """A paired device as JSON has it."""
    return {
        "class": paired.device_class.name.lower(),
        "serial": paired.serial,
        "maker": paired.maker,
        "model": paired.model,
        "fingerprint": paired.fingerprint,
        "paired_at": paired.paired_at,
        "by": list(paired.by),
    }


def show(args: argparse.Namespace, found: object, text: str) -> None:
    """Print the one or the other. The name of a directory need not be UTF-8."""
    readable = text.encode(errors="surrogateescape").decode(errors="replace")
    print(json.dumps(found, indent=2) if args.json else readable)


_SLIPS: Final = 3
"""How often a code may be mistyped. A slip is noticed here; the device never hears of it."""
_LABEL: Final = "the 36 digits that are printed under the device's seal"
_NAMES: Final = f"the names of two people, each {ALLOWED}"
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends a program at once, unless it is told otherwise."""
_BY, _AND = "--by", "--and"


class PromptCancelled(Exception):
    """Nobody answers the question: the input has ended (Ctrl-D)."""


def at_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))


def ask(question: str) -> str:
    """What somebody types in answer. Questions are for people, so they go to stderr. GivenUp if
    it is nothing at all."""
    print(question, end="", file=sys.stderr, flush=True)
    answer = _line()
    if not answer:
        raise PromptCancelled
    return answer.strip()


def _line() -> str:
    """A line of the input; what is no text is refused like any other text that cannot do."""
    try:
        return sys.stdin.readline() if sys.stdin is not None else ""
    except UnicodeDecodeError:
        return "\0\n"


# --- two people -------------------------------------------------------------------------------


def check_two_people(args: argparse.Namespace) -> None:
    """Refuse names that cannot do, as far as they are given."""
    given = {option: name for option, name in ((_BY, args.by), (_AND, args.second)) if name}
    for option, name in ((_BY, args.by), (_AND, args.second)):
        if name is None:
            if not at_terminal():
                raise UsageProblem(option, "is missing: two people must say so", _NAMES)
        else:
            _name(option, name)
    if len(given) == 2:
        _differ(args.by, args.second)


def two_people(args: argparse.Namespace) -> tuple[str, str]:
    """The names of the two people, asked for where they are not given."""
    check_two_people(args)
    first = _name(_BY, args.by if args.by is not None else ask("Your name: "))
    second = args.second
    if second is None:
        second = ask("Name of the second person: ")
    second = _name(_AND, second)
    _differ(first, second)
    return first, second


def _name(option: str, text: str) -> str:
    try:
        return name_of(text)
    except BadName:
        raise UsageProblem(option, f"{text!r} is no name", ALLOWED) from None


def _differ(first: str, second: str) -> None:
    if same_person(first, second):
        raise UsageProblem(_AND, f"{' '.join(second.split())!r} is the same person", "another one")


# --- labels and fingerprints ------------------------------------------------------------------


def given_code(option: str | None) -> bytes | None:
    """The code that --label gives; None where it is to be asked for."""
    if option is None and not at_terminal():
        raise UsageProblem("--label", "is missing", "CODE, or - to read it from standard input")
    if option is None or (option == "-" and at_terminal()):  # typed, so it is not to be shown
        return None
    try:
        return read_label(_line() if option == "-" else option)
    except BadLabelCode as problem:
        raise UsageProblem("--label", str(problem), _LABEL) from None


def ask_code() -> bytes:
    """The code, typed by somebody who may slip. It is not shown. GivenUp at the input's end."""
    for _ in range(_SLIPS):
        try:
            with echo_restored():
                typed = getpass.getpass("Code of the label (not shown): ")
            return read_label(typed)
        except (BadLabelCode, UnicodeDecodeError) as problem:
            what = problem if isinstance(problem, BadLabelCode) else "that is no text"
            print(f"{what}; try again", file=sys.stderr)
        except EOFError:
            raise PromptCancelled from None
    raise UsageProblem("label", f"no code in {_SLIPS} tries; the device has not been asked", _LABEL)


@contextmanager
def echo_restored() -> Iterator[None]:
    """Exits through exceptions on signals, so that getpass restores the terminal's echo."""

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


def given_fingerprint(option: str | None) -> bytes | None:
    """The fingerprint that --fingerprint gives. Case, blanks and dashes do not matter."""
    if option is None:
        return None
    try:
        raw = bytes.fromhex("".join(option.split()).replace("-", ""))
    except ValueError:
        raw = b""
    if len(raw) != FINGERPRINT_SIZE:
        raise UsageProblem(
            "--fingerprint", f"{option!r} is none", f"{2 * FINGERPRINT_SIZE} digits 0 to 9, A to F"
        )
    return raw
