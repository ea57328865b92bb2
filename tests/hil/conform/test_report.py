"""What `holecard conform` reports, what a person is asked, and what other simulators lack."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from controller.errors import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Answer,
    CannotDo,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    LetGo,
    Load,
    MoveDoor,
    Press,
    Put,
    RingMemory,
    ServiceSwitch,
    TamperWith,
)
from firmware_protocol.messages import SCHEMA_HASHES
from hil.conform.runs import runner
from hil.conform.runs.runner import (
    INTERRUPTED,
    ItemOutcome,
    Result,
    RunResult,
    RunSettings,
    untried,
)
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.operators import (
    Operator,
    RemoteOperator,
    SimulatedOperator,
    TerminalOperator,
)
from hil.control import ControlClient
from tests.support.hil.conform.conform_rig import ITEMS, Rig

SETTING = RunSettings(
    profile="shoe",
    port="/dev/ttyUSB0",
    operator="nobody",
    seed=7,
    simulated_time=False,
    began="2026-07-01T12:00:00+00:00",
    device={"serial": "SH-1", "model": 'a "model" <1>'},
)
OUTCOMES = [
    ItemOutcome(ITEMS["FR-1"], "PASS", 0.1, 0.2),
    ItemOutcome(
        ITEMS["FR-2"],
        "FAIL",
        0.5,
        0.5,
        sent="HELLO <&> \x00\x1b",
        expected="nothing",
        came="HELLO_RSP, session 0x0001",
    ),
    ItemOutcome(ITEMS["EV-2"], "SKIP", 0.0, 0.0, remark="needs activity: --control or --ask"),
    ItemOutcome(ITEMS["TAP-1"], "PASS", 3.0, 9.0, remark="lengths only"),
    untried(ITEMS["HS-1"], "not paired"),
]
COURSE = RunResult(OUTCOMES)


def test_a_line_for_each_item_and_the_way_to_the_page() -> None:
    passed, failure, *others = [runner.lines(one) for one in OUTCOMES]
    assert passed == ["FR-1   PASS"]
    assert others == [
        ["EV-2   SKIP  needs activity: --control or --ask"],
        ["TAP-1  PASS  lengths only"],
        ["HS-1   UNTRIED  not paired"],
    ]
    failed = "\n".join(failure)
    assert failed.startswith("FR-2   FAIL\n")
    for words in ("HELLO <&>", "nothing", "HELLO_RSP, session 0x0001", ITEMS["FR-2"].text):
        assert words in failed
    assert failed.endswith("firmware_protocol/PROTOCOL.md#frame")
    assert runner.summary(COURSE) == "2 passed, 1 failed, 1 skipped, 1 not tried in 3.6 s"
    green = RunResult([OUTCOMES[0], OUTCOMES[4]])
    assert runner.summary(green).endswith("1 not tried in 0.1 s: the run is incomplete")


@pytest.mark.parametrize(
    ("results", "code"),
    [
        (["PASS", "PASS"], 0),
        (["PASS", "FAIL"], 1),
        (["FAIL", "SKIP", "UNTRIED"], 1),
        (["PASS", "SKIP"], 3),
        (["PASS", "UNTRIED"], 3),
        (["SKIP", "SKIP"], 3),
        (["UNTRIED"], 3),
        ([], 3),
    ],
)
def test_an_item_that_was_not_run_has_not_passed(results: list[Result], code: int) -> None:
    outcomes = [ItemOutcome(ITEMS["FR-1"], one, 0.0, 0.0) for one in results]
    assert runner.exit_code(RunResult(outcomes)) == code
    assert runner.as_json(SETTING, RunResult(outcomes))["exit_code"] == code
    assert runner.exit_code(RunResult(outcomes, INTERRUPTED)) == 130


def test_a_rule_that_does_not_apply_leaves_nothing_incomplete() -> None:
    not_applicable = ItemOutcome(ITEMS["SH-5"], "SKIP", 0.0, 0.0, not_applicable=True)
    assert runner.exit_code(RunResult([OUTCOMES[0], not_applicable])) == 0
    assert runner.exit_code(RunResult([not_applicable])) == 3


def test_json_has_configuration_versions_and_seed() -> None:
    found = runner.as_json(SETTING, COURSE, ["not paired: why"])
    wanted = {"passed": 2, "failed": 1, "skipped": 1, "not_tried": 1, "seed": 7, "broken_off": ""}
    assert found.items() >= wanted.items()
    assert found["notices"] == ["not paired: why"]
    assert found["versions"]["schema"] == SCHEMA_HASHES[1].hex()
    assert [one["id"] for one in found["items"]] == ["FR-1", "FR-2", "EV-2", "TAP-1", "HS-1"]
    came = [one.get("came") for one in found["items"][:2]]
    assert came == [None, "HELLO_RSP, session 0x0001"]


def test_junit_is_well_formed() -> None:
    (suite,) = ElementTree.fromstring(runner.as_junit(SETTING, COURSE)).iter("testsuite")
    counted = {"tests": "5", "errors": "1", "failures": "1", "skipped": "1"}
    assert suite.attrib.items() >= counted.items()
    facts = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    wanted = {"seed": "7", "device.model": 'a "model" <1>', "version.protocol": "TableLink/1"}
    assert facts.items() >= wanted.items()
    cases = {one.attrib["name"]: one for one in suite.iter("testcase")}
    assert list(cases) == ["FR-1", "FR-2", "EV-2", "TAP-1", "HS-1"]
    (failure,) = cases["FR-2"].iter("failure")
    assert ITEMS["FR-2"].link in str(failure.text)
    for name, tag, message in (
        ("EV-2", "skipped", "needs activity: --control or --ask"),
        ("HS-1", "error", "not tried: not paired"),
    ):
        assert [one.attrib["message"] for one in cases[name].iter(tag)] == [message]


# --- who stands at the device -----------------------------------------------------------------


def answer(text: bytes, hand: ControlRequest | None = None) -> tuple[object, TerminalOperator]:
    """What a person's line gives."""
    reading, writing = os.pipe()
    try:
        os.write(writing, text)
        os.close(writing)
        person = TerminalOperator(reading)
        if hand is None:
            return asyncio.run(person.label()), person
        return asyncio.run(person.do(hand)), person
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("hand", "words"),
    [
        (Draw(), "Draw one card, then press Enter: "),
        (Draw(count=3), "Draw 3 cards, one after the other"),
        (Draw(read="no_index"), "face covered"),
        (Load(decks=6), "put 6 decks in"),
        (Press(seat=2, button="hit"), "Press HIT at seat 2 and let it go"),
        (Press(seat=2, button="hit", held_ms=None), "keep it down"),
        (LetGo(seat=2, button="hit"), "Let HIT at seat 2 go"),
        (ServiceSwitch(on=True), "Turn the service switch on"),
        (MoveDoor(open=False), "Close the door"),
        (Put(decks=4), "Put 4 decks into the shuffler"),
        (CutPower(), "Cut the device's power"),
    ],
)
def test_a_person_gets_instructions(
    hand: ControlRequest, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(b"\n", hand)[0] == {}
    assert words in capsys.readouterr().err


def test_a_person_types_in_the_label_once(capsys: pytest.CaptureFixture[str]) -> None:
    label, person = answer(b"9C0F-5A11\n")
    assert label == "9C0F-5A11"
    assert asyncio.run(person.label()) == "9C0F-5A11"
    assert capsys.readouterr().err.count("Code on") == 1


@pytest.mark.parametrize(
    "hand",
    [
        Draw(read="low"),
        Load(cards=("As",)),
        Press(seat=1, button="hit", bounces=3),
        Put(decks=6, sorted=True),
        RingMemory(what="fill"),
        TamperWith(source="case"),
        Describe(),
    ],
)
def test_a_request_that_no_person_can_do_skips_the_item(hand: ControlRequest) -> None:
    with pytest.raises(ItemSkipped, match="--control"):
        answer(b"\n", hand)


def test_a_closed_stdin_is_a_usage_error() -> None:
    with pytest.raises(UsageProblem, match="--ask: stdin has ended"):
        answer(b"", Draw())


def test_stdin_from_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("\n\n\n")
    with (tmp_path / "lines").open() as file:
        person = TerminalOperator(file.fileno())
        with pytest.raises(UsageProblem, match="--ask: stdin is a file"):
            asyncio.run(person.do(Draw()))


def test_without_an_operator_every_request_is_skipped() -> None:
    for question in (
        Operator().do(Draw()),
        Operator().label(),
        Operator().confirm("Look: is it lit?"),
    ):
        with pytest.raises(ItemSkipped, match="--control or --ask"):
            asyncio.run(question)


class Terse(SimulatedOperator):
    """Hands that do all, and see what they are told to see."""

    def __init__(self, sees: Any = None) -> None:
        self.sees = sees
        self.request: Callable[[ControlRequest], Answer]

    async def do(self, hand: ControlRequest) -> Answer:
        answer = self.request(hand)
        return {"mechanism": self.sees} if isinstance(hand, Describe) else answer


@pytest.mark.parametrize("sees", [None, [], {}, {"out": 3, "buzzes": "two", "seats": {"1": 7}}])
@pytest.mark.parametrize(
    ("profile", "item", "result", "words"),
    [
        ("shoe", "SH-5", "SKIP", "needs a device whose 'describe' has mechanism.out"),
        ("station", "ST-5", "SKIP", "a device whose 'describe' has mechanism.seats.1.lamps.lit"),
        ("station", "CO-1", "PASS", "sounds were not counted: needs a device whose 'describe'"),
    ],
)
def test_an_item_is_skipped_without_its_field_of_describe(
    tmp_path: Path, profile: Profile, item: str, result: str, words: str, sees: Any
) -> None:
    operator = Terse(sees)
    rig = Rig(tmp_path, profile, operator=operator)
    operator.request = rig.request
    outcome = rig.attempt(item)
    assert outcome.result == result
    assert words in outcome.remark


# --- over the socket ------------------------------------------------------------------------


def said(path: Path, line: bytes, do: Callable[[RemoteOperator], Any]) -> Any:
    """What comes of it when a control socket answers so."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    async def scene() -> Any:
        with ControlClient(path) as control, server.accept()[0] as peer:
            peer.sendall(line + b"\n")
            return await do(RemoteOperator(control))

    try:
        return asyncio.run(scene())
    finally:
        server.close()


NO = b'{"ok": false, "error": "no", "where": "%s", "allowed": ""}'


async def _draws(operator: RemoteOperator) -> Any:
    return await operator.do(Draw(double=True))


@pytest.mark.parametrize(
    ("line", "do", "problem", "words"),
    [
        # a verb or field that it does not know
        (NO % b"do", _draws, ItemSkipped, "supports 'draw'$"),
        (NO % b"double", _draws, ItemSkipped, "supports 'draw' with double$"),
        # a request that is denied
        *((line, _draws, CannotDo, "no|refused") for line in (NO % b"draw", b'{"ok": false}')),
        # an answer that is none
        *(
            (line, _draws, UsageProblem, "--control")
            for line in (b"yes", b"[]", b"{}", b'{"ok": 1}', b"\xff")
        ),
        # no label
        (b'{"ok": true}', RemoteOperator.label, ItemSkipped, "label"),
        (b'{"ok": true, "answer": {"label": 7}}', RemoteOperator.label, ItemSkipped, "label"),
    ],
)
def test_what_a_socket_cannot_answer(
    tmp_path: Path,
    line: bytes,
    do: Callable[[RemoteOperator], Any],
    problem: type[Exception],
    words: str,
) -> None:
    with pytest.raises(problem, match=words):
        said(tmp_path / "s", line, do)
