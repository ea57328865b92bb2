"""How a PIN comes to the command line: typed twice and not shown, or from a file descriptor."""

from __future__ import annotations

import getpass
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from controller.errors import UsageProblem
from controller.people.pins import ALLOWED, MOST, BadPin, check_pin
from controller.terminal_cli_people import GivenUp, at_terminal

OPTION: Final = "--pin-fd"
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
    pin = _line(descriptor)
    try:
        check_pin(pin, badge)
    except BadPin as problem:
        raise UsageProblem(OPTION, problem.what, problem.allowed) from None
    return pin


def _line(descriptor: int) -> str:
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
        raise GivenUp from None
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
