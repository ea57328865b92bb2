"""`holecard people`: what it makes, shows, changes and refuses, and how PINs are given to it."""

import getpass
import os
import pty
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from argon2.exceptions import HashingError

from controller.cli import main
from controller.people import PeopleFile, pins
from tests.support.commands import Says
from tests.support.table.simulated.house import PINS, has_pin, house, put, who
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
from tests.support.terminal import answers, at_terminal, shows, until


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeopleFile:
    return found(house(tmp_path), monkeypatch)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PeopleFile:
    return found(PeopleFile(tmp_path / "new" / "people.json", tmp_path / "keys"), monkeypatch)


# --- beginning --------------------------------------------------------------------------------


def test_init_makes_a_file_and_its_key(empty: PeopleFile, said: Says) -> None:
    code, out, err = said(people("init"))
    key = empty.read().key
    words = f"made {empty.file}\nits key: {empty.key_file}, fingerprint {key.fingerprint}\n"
    assert (code, out) == (0, words)
    assert f"Keep a backup of {empty.key_file}" in err
    assert key.open().hex() not in out + err
    assert said(people("list")) == (0, "no people yet\n", "")
    assert said(people("init")).refused("people.json: exists already; allowed: a different file")


def test_init_where_it_is_told_to(tmp_path: Path, file: PeopleFile, said: Says) -> None:
    place, keys = tmp_path / "o" / "p.json", tmp_path / "k"
    made = said(people("init", "--file", str(place), "--keys", str(keys), "--json")).json
    assert (made["file"], made["key"]) == (str(place), str(keys / "people.key"))
    assert made["fingerprint"] == PeopleFile(place, keys).read().key.fingerprint


def test_the_first_person_needs_no_init(empty: PeopleFile, said: Says) -> None:
    assert said(with_pin(*IVY, *TWO)).failed(0, "Keep a backup of ")
    assert [one.badge for one in empty.read().every] == ["D-20"]


def test_a_key_that_is_gone_is_not_made_anew(file: PeopleFile, said: Says) -> None:
    file.key_file.unlink()
    assert said(with_pin(*IVY, *TWO)).refused(
        "people.key: is missing; allowed: the file from a backup"
    )
    assert not file.key_file.exists()


# --- adding -----------------------------------------------------------------------------------


def test_somebody_is_added_by_two_people(file: PeopleFile, said: Says) -> None:
    assert said(with_pin(*IVY, *TWO)) == (
        0,
        "added: D-20         Ivy North                dealer\n",
        "",
    )
    assert has_pin(file, "D-20", PIN)
    (line,) = history(file)
    assert (line["what"], line["by"], line["badge"]) == ("added", ["Ann Lee", "Bo Chan"], "D-20")
    assert PIN not in file.file.read_text() + file.history_file.read_text()


def test_somebody_is_added_at_a_terminal(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    sit(monkeypatch, "Ann Lee", "Bo Chan", hidden=("123456", PIN, "999999", PIN, PIN))
    answer = said(people(*IVY, "--json"))
    assert answer.json == {
        "badge": "D-20",
        "name": "Ivy North",
        "roles": ["dealer"],
        "disabled": False,
    }
    assert answer.failed(
        0, "only counts on, or repeats one digit", "the two PINs differ; try again"
    )
    assert PIN not in answer.err
    assert history(file)[0]["by"] == ["Ann Lee", "Bo Chan"]


def test_whoever_has_another_badge_is_one_person_with_both(file: PeopleFile, said: Says) -> None:
    same = ("add", "D-20", "--name", "bo   CHAN", "--roles", "floor,dealer")
    assert said(with_pin(*same, *TWO)).failed(0, "Bo Chan has the badge F-2 too")
    made = who(file, "D-20")
    assert (made.name, made.roles) == ("bo CHAN", ("dealer", "floor"))


WRONG: Final = {
    "badge": (("add", "D 20", *IVY[2:], *TWO), "BADGE: 'D 20' is not a badge; allowed: 1 to 32"),
    "long badge": (("add", "D" * 33, *IVY[2:], *TWO), "is not a badge"),
    "control": (
        (*IVY[:3], "Ivy\x07", *IVY[4:], *TWO),
        r"--name: 'Ivy\x07' is not a name; allowed: ",
    ),
    "long": ((*IVY[:3], "I" * 65, *IVY[4:], *TWO), "is not a name; allowed: 1 to 64"),
    "blank": ((*IVY[:3], " ", *IVY[4:], *TWO), "--name: ' ' is not a name"),
    "role": ((*IVY[:5], "boss", *TWO), "--roles: there is no role 'boss'; allowed: dealer, floor"),
    "roles": ((*IVY[:5], ",", *TWO), "--roles: no role is given"),
    "taken": (("add", "d-17", *IVY[2:], *TWO), "BADGE: D-17 is Ann Lee's; allowed: another"),
    "one person": ((*IVY, "--by", "Ann", "--and", "ann"), "--and: 'ann' is the same person"),
    "nobody": ((*IVY, "--by", "Ann"), "--and: is missing: two people must approve"),
    "empty file": ((*IVY, *TWO, "--file", ""), "--file: is empty; allowed: a file"),
    "empty keys": ((*IVY, *TWO, "--keys", ""), "--keys: is empty; allowed: a directory"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_changes_nothing(file: PeopleFile, said: Says, name: str) -> None:
    before = file.file.read_bytes()
    arguments, words = WRONG[name]
    assert said(with_pin(*arguments)).mistaken(words)
    assert file.file.read_bytes() == before
    assert not file.history_file.exists()


# --- changing ---------------------------------------------------------------------------------


def test_disable_enable_and_roles(file: PeopleFile, said: Says) -> None:
    line = "abled: D-17         Ann Lee                  dealer"
    assert said(people("disable", "d-17", *TWO)) == (0, f"dis{line} (disabled)\n", "")
    assert said(people("enable", "D-17", *TWO)) == (0, f"en{line}\n", "")
    assert said(people("roles", "D-17", "floor, dealer", *TWO, "--json")).told('"floor"')
    assert [(line["what"], line["roles"]) for line in history(file)] == [
        ("disabled", ["dealer"]),
        ("enabled", ["dealer"]),
        ("roles", ["dealer", "floor"]),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("disable", "X-1"), "BADGE: X-1 is disabled already"),
        (("enable", "D-17"), "BADGE: D-17 is not disabled"),
        (("roles", "F-3", "floor,dealer"), "ROLES: F-3 has these roles already"),
        (("roles", "F-3", "boss"), "ROLES: there is no role 'boss'"),
        (
            ("disable", "D-99"),
            "BADGE: no person has 'D-99'; allowed: one of `holecard people list`",
        ),
        (("reset", ""), "BADGE: no person has ''"),
        (("roles", "D\n9", "floor"), r"BADGE: no person has 'D\n9'"),
    ],
)
def test_what_cannot_be_changed_is_said_before_anybody_is_asked(
    file: PeopleFile, said: Says, arguments: tuple[str, ...], words: str
) -> None:
    before = file.file.read_bytes()
    assert said(people(*arguments)).refused(words)
    assert file.file.read_bytes() == before


def test_the_last_one_who_can_be_floor_is_told_of(file: PeopleFile, said: Says) -> None:
    told = "no enabled badge has the role floor any more\n"
    for words, warning in (
        ("disable F-2", ""),
        ("roles F-9 dealer", ""),
        ("disable F-3", told),
        ("disable D-17", ""),
        ("enable F-3", ""),
        ("roles F-3 dealer", told),
    ):
        assert said(people(*words.split(), *TWO)).done(warning), words


def test_reset_gives_another_pin(file: PeopleFile, said: Says) -> None:
    assert said(with_pin("reset", "d-17", *TWO)).told("reset: D-17 ")
    assert (has_pin(file, "D-17", PIN), has_pin(file, "D-17", PINS["D-17"])) == (True, False)
    assert said(with_pin("reset", "D-17", *TWO)).refused(
        "PIN: D-17 has this one already; allowed: another one"
    )
    assert [line["what"] for line in history(file)] == ["PIN reset"]


def test_a_machine_without_memory_says_so(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    def full(*_: object) -> bytes:
        raise HashingError("Memory allocation error")

    monkeypatch.setattr(pins, "hash_secret_raw", full)
    assert said(with_pin(*IVY, *TWO)).refused("the PIN cannot be checked: Memory allocation error")
    assert not file.history_file.exists()


# --- looking ----------------------------------------------------------------------------------


def test_list_shows_everybody_and_no_verifier(file: PeopleFile, said: Says) -> None:
    shown, as_json = said(people("list")), said(people("list", "--json"))
    lines = shown.out.splitlines()
    assert (shown.code, lines[3], lines[-1]) == (
        0,
        "F-2          Bo Chan                  floor",
        "X-1          Hal Gone                 dealer, floor (disabled)",
    )
    assert [one["badge"] for one in as_json.json["people"]] == list(PINS)
    assert "argon2" not in shown.out + as_json.out


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.file.chmod(0o622), "others may touch it (mode 622)"),
        (lambda file: file.file.parent.chmod(0o777), "others may replace people.json"),
        (lambda file: put(file.file, b"{}"), "is damaged: "),
        (lambda file: put(file.file, b"people"), "is damaged: "),
        (lambda file: file.file.unlink(), "there is no such file; allowed: `holecard people init "),
    ],
    ids=["mode", "place", "empty", "words", "gone"],
)
def test_a_file_that_cannot_be_used(
    file: PeopleFile,
    said: Says,
    damage: Callable[[PeopleFile], None],
    words: str,
) -> None:
    damage(file)
    for command in (("list",), ("disable", "D-17", *TWO), ("reset", "D-17", *TWO)):
        assert said(people(*command)).mistaken(words)


def test_help_of_each_command_has_examples(said: Says) -> None:
    for command in ("init", "list", "add", "disable", "enable", "reset", "roles"):
        assert said(people(command, "--help")).told(
            f"examples:\n  holecard people {command}", "Exit codes: 0 done; 1 not done; 2 "
        )
    assert said(main(["--help"])).told("  people      keep the people of a house\n")


PATIENCE: Final = 20.0


# --- PINs from a descriptor -------------------------------------------------------------------


@pytest.mark.parametrize("pin", [PIN, f"{PIN}\n", f"{PIN}\r\n", f"{PIN}\nmore\n"])
def test_the_first_line_is_the_pin(file: PeopleFile, pin: str) -> None:
    assert with_pin(*IVY, *TWO, pin=pin.encode()) == 0
    assert has_pin(file, "D-20", PIN)


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
def test_what_is_no_pin_is_refused(file: PeopleFile, said: Says, pin: bytes, words: str) -> None:
    before = file.file.read_bytes()
    answer = said(with_pin(*IVY, *TWO, pin=pin))
    assert answer.refused("--pin-fd: ", words)
    assert "481" not in answer.err
    assert file.file.read_bytes() == before


def test_descriptors_that_cannot_do(file: PeopleFile, tmp_path: Path, said: Says) -> None:
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
        assert said(people(*IVY, *TWO, f"--pin-fd={number}")).refused(words)
    for descriptor in (master, slave, writing, folder):
        os.close(descriptor)
    assert file.read().find("D-20") is None


def test_without_a_terminal_nobody_is_asked(file: PeopleFile, said: Says) -> None:
    for command in (IVY, ("reset", "D-17")):
        assert said(people(*command, *TWO)).refused(
            "--pin-fd: is missing, and there is no terminal to ask for a PIN"
        )
    for words in ("disable D-17", "enable X-1", "roles D-17 floor"):
        assert said(people(*words.split())).refused("--by: is missing: two people must approve")


# --- at a terminal ----------------------------------------------------------------------------


def test_a_pin_that_is_mistyped_too_often_is_given_up(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    sit(monkeypatch, hidden=("1", "111111", PIN, "481624"))
    assert said(people(*IVY, *TWO)).refused("PIN: none in 3 tries; allowed: 6 to 32 digits")
    assert not file.history_file.exists()


def test_a_terminal_that_would_show_the_pin_is_refused(
    file: PeopleFile,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
) -> None:
    def shown(prompt: str) -> str:
        warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)
        return PIN

    sit(monkeypatch)
    monkeypatch.setattr(getpass, "getpass", shown)
    assert said(people(*IVY, *TWO)).refused(
        "PIN: this terminal would show it; allowed: another terminal"
    )
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
        seen = answers(
            master,
            (b"Your name: ", "Ann Lee"),
            (b"second person: ", "Bo Chan"),
            (b"PIN for D-20 (not shown): ", PIN),
            (b"again (not shown): ", PIN),
        )
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
