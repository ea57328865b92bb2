"""What a hand is answered is what hil/CONTROL.md says, field by field."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import control
from firmware_protocol.device.control import ControlRequest
from hil.control.replies import (
    ANSWERS,
    CARDS,
    FLAG,
    KINDS,
    LAMPS,
    MECHANISM,
    NUMBER,
    NUMBERS,
    OBJECT,
    OR_NULL,
    READ_BY_CONFORM,
    SEAT,
    TEXT,
    TEXTS,
    ReplyField,
)
from hil.control.verbs import ALL
from tests.support.hil.conform.conform_rig import PROFILES, Rig

OUTLETS: Final = {"port", "usb_address"}
"""What a stand knows only once it is plugged in somewhere."""


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


IS: Final[dict[str, Callable[[Any], bool]]] = {
    FLAG: lambda value: isinstance(value, bool),
    NUMBER: number,
    TEXT: lambda value: isinstance(value, str),
    TEXTS: texts,
    NUMBERS: lambda value: isinstance(value, list) and all(map(number, value)),
    CARDS: texts,
    OBJECT: lambda value: isinstance(value, dict),
}
EVERYWHERE: Final[tuple[ControlRequest, ...]] = (
    control.ServiceSwitch(on=True),
    control.ServiceSwitch(on=False),
    control.Break("nak-ignored"),
    control.Break("nak-ignored", on=False),
    control.TamperWith("case"),
    control.InjectDefect("clock", arg=7),
    control.InjectDefect("clock", on=False),
    control.LineNoise(flip=0.1),
    control.LineNoise(),
    control.Plug(connected=False),
    control.Plug(connected=True, other_port=True),
    control.Freeze(on=True),
    control.Freeze(on=False),
    control.RingMemory("save"),
    control.RingMemory("restore"),
    control.RingMemory("replace"),
    control.Firmware("2.0"),
)
LAST: Final[tuple[ControlRequest, ...]] = (
    control.CutPower(at="in_commit"),
    control.RingMemory("fill"),
    control.CutPower(),
)
OWN: Final[dict[Profile, tuple[ControlRequest, ...]]] = {
    "shoe": (
        control.Load(cards=("Ac", "2c", "cut"), decks=1),
        control.Draw(force=True),
        control.Retract(),
        control.MoveCover(open=True),
        control.MoveCover(open=True),
        control.MoveCover(open=False),
        control.SetJam("stuck"),
        control.SetJam(None),
    ),
    "shuffler": (
        control.Put(decks=1),
        control.MoveDoor(open=True),
        control.MoveDoor(open=False),
        control.ShufflePace(shuffle_ms=10),
        control.SetJam("motor"),
        control.SetJam(None),
    ),
    "station": (
        control.Press(1, "hit", held_ms=None),
        control.LetGo(1, "hit"),
        control.Chord(1, ("yes", "no")),
        control.SetLamp(1),
    ),
}


def check(answer: dict[str, Any], told: tuple[ReplyField, ...]) -> None:
    kinds = {one.name: one.kind for one in told}
    assert set(kinds) - set(answer) <= OUTLETS
    for name, value in answer.items():
        kind = kinds[name]
        may_be_null = kind.endswith(OR_NULL)
        assert IS[kind.removesuffix(OR_NULL)](value) or (value is None and may_be_null), name


@pytest.mark.parametrize("profile", PROFILES)
def test_each_verb_answers_as_the_page_describes(profile: Profile, tmp_path: Path) -> None:
    rig = Rig(tmp_path, profile)
    done = set()
    for hand in (*EVERYWHERE, *OWN[profile], *LAST):
        answer = rig.request(hand)
        if (
            type(hand) is control.RingMemory and hand.what == "fill"
        ):  # it ran into the cut before it
            assert answer == {"power": "cut", "at": "in_commit"}
        else:
            check(answer, ANSWERS[type(hand)])
        asyncio.run(rig.wire.sleep(rig.wire.now() + 1_000_000))
        looked = rig.request(control.Describe())
        check(looked, ANSWERS[control.Describe])
        check(looked["mechanism"], MECHANISM[profile])
        for seat in looked["mechanism"].get("seats", {}).values():
            check(seat, SEAT)
            check(seat["lamps"], LAMPS)
        done.add(type(hand))
    assert {type(hand) for hand in OWN[profile]} <= done


def test_every_verb_has_its_answer() -> None:
    tried = {type(hand) for many in (EVERYWHERE, LAST, *OWN.values()) for hand in many}
    assert set(ANSWERS) == set(ALL.values()) == tried | {control.Describe}
    told = [one for many in (*ANSWERS.values(), *MECHANISM.values(), SEAT, LAMPS) for one in many]
    assert {one.kind.removesuffix(OR_NULL) for one in told} == set(KINDS) == set(IS)
    names = {one.name for one in told}
    for path in READ_BY_CONFORM:
        assert set(path.split(".")) - {"N"} <= names
