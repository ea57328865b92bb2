"""The people's file and its history: whatever one says and the other does not is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.people import People, PeopleFile, Person, history_differences
from controller.people.person import people_bytes
from drivers.keys import KeyProblem
from tests.support.table.simulated.house import AT, KEY, everybody, history_of, house, person, put
from tests.support.table.typed.at_command import TWO, alone, found, people
from tests.support.table.typed.at_desk import change

HAL = "Hal Gone (dealer, floor"
SINCE = f"since {AT}, by Ann Lee and Bo Chan"


@pytest.fixture
def file(tmp_path: Path) -> PeopleFile:
    made = house(tmp_path)
    put(made.history_file, history_of(everybody()))
    return made


def by_hand(file: PeopleFile, make: Callable[[Person], Person | None], badge: str = "D-17") -> None:
    """Somebody edits the file."""
    every = [make(one) if one.badge == badge else one for one in everybody()]
    put(file.file, people_bytes(People(KEY, tuple(one for one in every if one is not None))))


CASES: dict[str, tuple[Callable[[Person], Person | None], str, str]] = {
    "name": (
        lambda one: replace(one, name="Ann Leigh"),
        "D-17",
        f"D-17 is Ann Leigh (dealer) in the file; by the history Ann Lee (dealer), {SINCE}",
    ),
    "roles": (
        lambda one: replace(one, roles=("dealer", "floor")),
        "D-17",
        f"D-17 is Ann Lee (dealer, floor) in the file; by the history Ann Lee (dealer), {SINCE}",
    ),
    "enabled": (
        lambda one: replace(one, disabled=False),
        "X-1",
        f"X-1 is {HAL}) in the file; by the history {HAL}, disabled), {SINCE}",
    ),
    "gone": (
        lambda one: None,
        "D-17",
        f"D-17, Ann Lee, is not in the file; the history has them, {SINCE}",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_done_by_hand_is_told(file: PeopleFile, case: str) -> None:
    make, badge, words = CASES[case]
    assert history_differences(file, file.read()) == []
    by_hand(file, make, badge)
    assert history_differences(file, file.read()) == [words]


def test_somebody_who_was_put_there_by_hand(file: PeopleFile) -> None:
    one = person("D-99", "Nick Nobody", ("dealer",))
    put(file.file, people_bytes(People(KEY, (*everybody(), one))))
    words = "D-99, Nick Nobody, is in the file, but in no line of the history"
    assert history_differences(file, file.read()) == [words]


def test_what_is_done_with_the_command_is_no_difference(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(file, monkeypatch)
    alone(monkeypatch)
    for words in (("disable", "D-17"), ("enable", "X-1"), ("roles", "D-18", "dealer,floor")):
        assert people(*words, *TWO) == 0
    change(file, "D-19", lambda one: one)
    capsys.readouterr()
    assert people("list") == 0
    assert capsys.readouterr().err == ""


def test_the_list_says_what_is_odd(
    file: PeopleFile, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(file, monkeypatch)
    alone(monkeypatch)
    file.history_file.unlink()
    assert people("list") == 0
    assert capsys.readouterr().err == (
        f"warning: {file.history_file} is missing: the origin of these people is unknown\n"
    )


def test_lines_that_are_none_and_a_file_that_others_may_touch(file: PeopleFile) -> None:
    with file.history_file.open("ab") as lines:
        lines.write(b'{"what":"pai\n\xff\n')
    number = len(everybody()) + 2
    assert history_differences(file, file.read()) == [
        f"line {at} of {file.history_file} is not a valid change" for at in (number, number + 1)
    ]
    file.history_file.chmod(0o666)
    with pytest.raises(KeyProblem, match="others may touch it"):
        history_differences(file, file.read())


def test_a_house_without_people_needs_no_history(tmp_path: Path) -> None:
    made = house(tmp_path, ())
    assert history_differences(made, made.read()) == []
