"""`holecard people` as tests call it: with a pipe for the PIN, or somebody who types."""

import getpass
import io
import json
import os
import sys
from typing import Any, Final

import pytest

from controller import terminal
from controller.cli import main
from controller.people import PeopleFile, commands, pins
from tests.support.table.simulated.house import CHEAP

TWO: Final = ("--by", "Ann Lee", "--and", "Bo Chan")
PIN: Final = "481623"
IVY: Final = ("add", "D-20", "--name", "Ivy North", "--roles", "dealer")


def found(file: PeopleFile, patch: pytest.MonkeyPatch) -> PeopleFile:
    """Where a command finds it without --file and --keys."""
    patch.setenv("HOLECARD_PEOPLE", str(file.file))
    patch.setenv("HOLECARD_KEYS", str(file.keys))
    return file


def sit(patch: pytest.MonkeyPatch, *lines: str, hidden: tuple[str, ...] = ()) -> None:
    """Somebody sits at a terminal and types this."""
    left = list(hidden)
    patch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    for module in (terminal, commands):
        patch.setattr(module, "at_terminal", lambda: True)
    patch.setattr(getpass, "getpass", lambda prompt: left.pop(0))


def alone(patch: pytest.MonkeyPatch) -> None:
    """Nobody sits there, and PINs are cheap to ask."""
    patch.setattr(pins, "COST", CHEAP)
    patch.setattr(sys, "stdin", io.StringIO())


def people(*arguments: str) -> int:
    return main(["people", *arguments])


def with_pin(*arguments: str, pin: bytes = PIN.encode() + b"\n") -> int:
    """The PIN comes from a pipe, whose number the command is told."""
    reading, writing = os.pipe()
    try:
        os.write(writing, pin)
        os.close(writing)
        return people(*arguments, "--pin-fd", str(reading))
    finally:
        os.close(reading)


def history(file: PeopleFile) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.history_file.read_text().splitlines()]
