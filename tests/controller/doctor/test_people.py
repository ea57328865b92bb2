"""A file of people that cannot be used, people who are too few, and the commands that mend it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.people import People
from controller.people.person import people_bytes
from tests.support.daemon.doctor_house import House, house
from tests.support.table.simulated.house import KEY, PINS, person, put

TWO = " --by 'Ann Lee' --and 'Bo Chan'"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as one:
        yield one


@pytest.mark.parametrize("bits", [0o666, 0o640])
def test_a_file_of_people_that_others_may_touch(made: House, bits: int) -> None:
    made.people.chmod(bits)
    assert f"(mode {bits:o})" in made.problem("people's place").what
    assert made.check("people").verdict == "skipped"
    made.mend("people's place")
    assert made.check("people").verdict == "ok"


def test_a_file_of_people_that_others_may_replace(made: House) -> None:
    made.run.chmod(0o777)
    assert "others may replace" in made.problem("people's place").what
    made.mend("people's place")


def test_a_house_without_people(made: House) -> None:
    made.people.unlink()
    made.mend("people")
    found = made.check("roles")
    assert [one.what for one in found.problems] == [
        "no enabled person is dealer",
        "no enabled person is floor",
    ]


def test_people_without_their_key(made: House) -> None:
    (made.keys / "people.key").unlink()
    problem = made.problem("people")
    assert problem.commands == ()
    assert "restore it from its backup" in problem.mend


def test_people_whose_pins_went_through_another_key(made: House) -> None:
    made.people.write_bytes(made.people.read_bytes().replace(KEY.fingerprint.encode(), b"0" * 39))
    assert "another key" in made.problem("people").what


def test_people_who_are_not_what_their_history_says(made: House) -> None:
    assert made.check("history").verdict == "ok"
    data = made.people.read_bytes()
    made.people.write_bytes(data.replace(b'"Bo Chan"', b'"Bob Chance"'))
    problem = made.problem("history")
    assert problem.grade == "warning"
    assert problem.what == (
        "F-2 is Bob Chance (floor) in the file; by the history Bo Chan (floor), "
        "since 2027-01-15T08:00:00Z, by Ann Lee and Bo Chan"
    )
    assert problem.mend.startswith("ask the people who are named there")
    made.people.write_bytes(data)
    made.people.with_name("people.json.history.jsonl").unlink()
    assert "history.jsonl is missing" in made.problem("history").what


def test_of_a_whole_house_without_a_history_a_few_are_told(made: House) -> None:
    put(made.people.with_name("people.json.history.jsonl"), b"")
    problems = made.check("history").problems
    assert (len(problems), problems[-1].what) == (6, "and 4 more like that")


def _only(made: House, *who: str) -> None:
    every = {
        "D-17": person("D-17", "Ann Lee", ("dealer",)),
        "F-2": person("F-2", "Bo Chan", ("floor",)),
        "F-9": person("F-9", "Ann Lee", ("dealer", "floor")),
        "X-1": person("X-1", "Hal Gone", ("dealer", "floor"), gone=True),
        "T-1": person("T-1", "Eve Pond", ("technician",)),
    }
    put(made.people, people_bytes(People(KEY, tuple(every[badge] for badge in who))))


@pytest.mark.parametrize(("who", "role"), [(("F-2", "X-1"), "dealer"), (("D-17", "X-1"), "floor")])
def test_somebody_who_is_missing_is_added(made: House, who: tuple[str, ...], role: str) -> None:
    _only(made, *who)
    assert made.problem("roles").what == f"no enabled person is {role}"
    pin = put_pin(made)
    made.mend("roles", f"{TWO} --pin-fd 3 3< {pin}", said="Dee Faro\n")
    assert "1 dealer, 1 floor" in made.check("roles").note


@pytest.mark.parametrize("who", [("F-9",), ("F-9", "D-17"), ("F-9", "T-1", "X-1")])
def test_two_badges_of_one_person_are_no_two_people(made: House, who: tuple[str, ...]) -> None:
    _only(made, *who)
    assert "only Ann Lee can act where two people must" in made.problem("roles").what


def test_a_second_person_is_added(made: House) -> None:
    _only(made, "F-9")
    pin = put_pin(made)
    made.mend("roles", f"{TWO} --pin-fd 3 3< {pin}", said="Dee Faro\n")


def test_a_badge_that_is_proposed_is_nobodys(made: House) -> None:
    one = person("D-1", "Hal Gone", ("dealer",), gone=True)
    put(made.people, people_bytes(People(KEY, (one, person("F-2", "Bo Chan", ("floor",))))))
    assert " people add D-2 " in made.check("roles").problems[0].commands[0]


def put_pin(made: House) -> Path:
    pin = made.place / "pin"
    put(pin, f"{PINS['S-1']}\n".encode())
    return pin
