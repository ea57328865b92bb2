"""How a PIN comes to `holecard people`: typed and not shown, or from a file descriptor."""

from __future__ import annotations

import getpass
import os
import pty
import signal
import warnings
from pathlib import Path
from typing import Final

import pytest

from controller.people import PeopleFile
from tests.support.table.simulated.house import KEY, house
from tests.support.table.typed.at_command import (
    IVY,
    PIN,
    TWO,
    alone,
    found,
    history,
    people,
    sit,
    with_pin,
)
from tests.support.terminal import at_terminal, shows, until

PATIENCE: Final = 20.0


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeopleFile:
    return found(house(tmp_path), monkeypatch)


# --- PINs from a descriptor -------------------------------------------------------------------


@pytest.mark.parametrize("pin", [PIN, f"{PIN}\n", f"{PIN}\r\n", f"{PIN}\nmore\n"])
def test_the_first_line_is_the_pin(file: PeopleFile, pin: str) -> None:
    assert with_pin(*IVY, *TWO, pin=pin.encode()) == 0
    made = file.read().find("D-20")
    assert made is not None
    assert KEY.fits(made.verifier(), "D-20", PIN)


@pytest.mark.parametrize(
    ("pin", "words"),
    [
        (b"", "contains no PIN"),
        (b"\n", "contains no PIN"),
        (b"48162\n", "6 to 32 digits, not 5"),
        (b"48 16 23\n", "a PIN has digits only"),
        (b"48162\xff\n", "a PIN has digits only"),
        (b"4816\x0023\n", "a PIN has digits only"),
        (b"4" * 5000, "6 to 32 digits"),
        (b"111111\n", "repeats one digit"),
    ],
)
def test_what_is_no_pin_is_refused(
    file: PeopleFile, capsys: pytest.CaptureFixture[str], pin: bytes, words: str
) -> None:
    before = file.file.read_bytes()
    assert with_pin(*IVY, *TWO, pin=pin) == 2
    err = capsys.readouterr().err
    assert "--pin-fd: " in err
    assert words in err
    assert "481" not in err
    assert file.file.read_bytes() == before


def test_descriptors_that_cannot_do(
    file: PeopleFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    master, slave = pty.openpty()
    writing = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    folder = os.open(tmp_path, os.O_RDONLY)
    for number, words in (
        (str(slave), f"{slave} is a terminal, which shows what is typed"),
        (str(writing), f"{writing} cannot be read: bad file descriptor"),
        (str(folder), f"{folder} cannot be read: is a directory"),
        ("987", "987 is not open"),
        (str(10**30), "is not open"),
        ("-1", "'-1' is not the number"),
        ("three", "'three' is not the number"),
    ):
        assert people(*IVY, *TWO, f"--pin-fd={number}") == 2
        assert words in capsys.readouterr().err
    for descriptor in (master, slave, writing, folder):
        os.close(descriptor)
    assert file.read().find("D-20") is None


def test_without_a_terminal_nobody_is_asked(
    file: PeopleFile, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (IVY, ("reset", "D-17")):
        assert people(*command, *TWO) == 2
        assert (
            "--pin-fd: is missing, and there is no terminal to ask for a PIN"
            in capsys.readouterr().err
        )
    for words in ("disable D-17", "enable X-1", "roles D-17 floor"):
        assert people(*words.split()) == 2
        assert "--by: is missing: two people must approve" in capsys.readouterr().err


# --- at a terminal ----------------------------------------------------------------------------


def test_a_pin_that_is_mistyped_too_often_is_given_up(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(monkeypatch, hidden=("1", "111111", PIN, "481624"))
    assert people(*IVY, *TWO) == 2
    assert "PIN: none in 3 tries; allowed: 6 to 32 digits" in capsys.readouterr().err
    assert not file.history_file.exists()


def test_a_terminal_that_would_show_the_pin_is_refused(
    file: PeopleFile,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(prompt: str) -> str:
        warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)
        return PIN

    sit(monkeypatch)
    monkeypatch.setattr(getpass, "getpass", shown)
    assert people(*IVY, *TWO) == 2
    assert "PIN: this terminal would show it; allowed: another terminal" in capsys.readouterr().err
    assert file.read().find("D-20") is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_whoever_is_ended_at_the_hidden_question_leaves_a_terminal_that_shows(
    file: PeopleFile, number: signal.Signals
) -> None:
    with at_terminal("people", *IVY, *TWO) as (child, master):
        until(master, b"(not shown): ")
        if number is signal.SIGTERM:  # also at the second question
            os.write(master, f"{PIN}\n".encode())
            until(master, b"The same again (not shown): ")
        assert not shows(master)
        os.killpg(os.tcgetpgrp(master), number)
        assert child.wait(PATIENCE) == 128 + number
        assert shows(master)
    assert file.read().find("D-20") is None


def test_a_pin_that_is_typed_is_not_shown(file: PeopleFile) -> None:
    with at_terminal("people", *IVY) as (child, master):
        seen = until(master, b"Your name: ")
        os.write(master, b"Ann Lee\n")
        seen += until(master, b"second person: ")
        os.write(master, b"Bo Chan\n")
        seen += until(master, b"PIN for D-20 (not shown): ")
        os.write(master, f"{PIN}\n".encode())
        seen += until(master, b"again (not shown): ")
        os.write(master, f"{PIN}\n".encode())
        seen += until(master, b"added: D-20")
        assert child.wait(PATIENCE) == 0
        assert PIN.encode() not in seen
        assert shows(master)
    assert history(file)[0]["by"] == ["Ann Lee", "Bo Chan"]


@pytest.mark.parametrize("arguments", [IVY, (*IVY, *TWO)], ids=["name", "PIN"])
def test_the_end_of_the_input_leaves_everything_as_it_is(
    file: PeopleFile, arguments: tuple[str, ...]
) -> None:
    with at_terminal("people", *arguments) as (child, master):
        until(master, b": ")
        os.write(master, b"\x04")
        until(master, b"not added: the question was not answered\r\n")
        assert child.wait(PATIENCE) == 1
        assert shows(master)
    assert file.read().find("D-20") is None
