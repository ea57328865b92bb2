"""Questions at a terminal, two-person approval, and errors of keys and ports as usage errors."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from controller.errors import UsageProblem
from drivers.keys import ALLOWED, BadName, KeyProblem, keys_directory, name_of, same_person
from drivers.ports import AddressProblem, PortRefused

_NAMES: Final = f"the names of two people, each {ALLOWED}"
_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that by default end the process without running Python code."""
_BY, _AND = "--by", "--and"


class PromptCancelled(Exception):
    """The input ended (Ctrl-D) before the question was answered."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raises UsageProblem for an error of keys, ports or addresses."""
    try:
        yield
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None
    except AddressProblem as problem:
        raise UsageProblem("PORT", problem.what, problem.allowed) from None
    except PortRefused as problem:
        raise UsageProblem("PORT", str(problem)) from None


def keys_directory_of(args: argparse.Namespace) -> Path:
    """The directory of --keys, or the default."""
    if args.keys == "":
        raise UsageProblem("--keys", "is empty", "a directory")
    return keys_directory(None if args.keys is None else Path(args.keys))


def utc_now() -> str:
    """The current time in the format of the key store."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- questions --------------------------------------------------------------------------------


def at_terminal() -> bool:
    """Whether questions can be asked: input and stderr are terminals."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))


def ask(question: str) -> str:
    """Asks on stderr. Returns the answer. Raises PromptCancelled at the end of the input."""
    print(question, end="", file=sys.stderr, flush=True)
    answer = input_line()
    if not answer:
        raise PromptCancelled
    return answer.strip()


def input_line() -> str:
    """A line of stdin; a line that cannot be decoded becomes one that no check accepts."""
    try:
        return sys.stdin.readline() if sys.stdin is not None else ""
    except UnicodeDecodeError:
        return "\0\n"


@contextmanager
def echo_restored() -> Iterator[None]:
    """Signals raise SystemExit meanwhile, so that getpass restores the terminal's echo."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)  # as a shell reports it

    ours = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


# --- two people -------------------------------------------------------------------------------


def check_two_people(args: argparse.Namespace) -> None:
    """Raises UsageProblem if --by and --and cannot be used, or are missing with no terminal."""
    for option, name in ((_BY, args.by), (_AND, args.second)):
        if name is not None:
            _name(option, name)
        elif not at_terminal():
            raise UsageProblem(option, "is missing: two people must approve", _NAMES)
    if args.by is not None and args.second is not None:
        _differ(args.by, args.second)


def two_people(args: argparse.Namespace) -> tuple[str, str]:
    """The names of the two people; what is not given is asked for. Raises PromptCancelled."""
    check_two_people(args)
    first = _name(_BY, args.by if args.by is not None else ask("Your name: "))
    second = args.second if args.second is not None else ask("Name of the second person: ")
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
        name = " ".join(second.split())
        raise UsageProblem(_AND, f"{name!r} is the same person", "a different person")
