"""What only people can say: who they are, and the code of a label. Asked for at a terminal."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Final

from controller.rules.problem import UsageProblem
from drivers.people import ALLOWED, BadName, name_of, same_person
from firmware_protocol.errors import BadLabelCode
from firmware_protocol.keys import FINGERPRINT_SIZE, read_label

_SLIPS: Final = 3
"""How often a code may be mistyped. A slip is noticed here; the device never hears of it."""
_LABEL: Final = "the 36 digits that are printed under the device's seal"
_NAMES: Final = f"the names of two people, each {ALLOWED}"
_BY, _AND = "--by", "--and"


def at_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> str:
    """What somebody types in answer. Questions are for people, so they go to stderr."""
    print(question, end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise UsageProblem("input", "it ended before the question was answered")
    return answer.strip()


# --- two people -------------------------------------------------------------------------------


def check(args: argparse.Namespace) -> None:
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


def two(args: argparse.Namespace) -> tuple[str, str]:
    """The names of the two people, asked for where they are not given."""
    check(args)
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
    if option is None:
        if not at_terminal():
            raise UsageProblem("--label", "is missing", "CODE, or - to read it from standard input")
        return None
    try:
        return read_label(sys.stdin.readline() if option == "-" else option)
    except BadLabelCode as problem:
        raise UsageProblem("--label", str(problem), _LABEL) from None


def ask_code() -> bytes:
    """The code, typed by somebody who may slip. It is not shown."""
    for _ in range(_SLIPS):
        try:
            typed = getpass.getpass("Code of the label (not shown): ")
            return read_label(typed)
        except BadLabelCode as problem:
            print(f"{problem}; try again", file=sys.stderr)
        except EOFError:
            break
    raise UsageProblem("label", f"no code in {_SLIPS} tries; the device has not been asked", _LABEL)


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
