"""What a hand is answered is what hil/CONTROL.md says, field by field."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Break,
    Chord,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    Firmware,
    Freeze,
    InjectDefect,
    LetGo,
    LineNoise,
    Load,
    MoveCover,
    MoveDoor,
    Plug,
    Press,
    Put,
    Retract,
    RingMemory,
    ServiceSwitch,
    SetJam,
    SetLamp,
    ShufflePace,
    TamperWith,
)
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
    ServiceSwitch(on=True),
    ServiceSwitch(on=False),
    Break("nak-ignored"),
    Break("nak-ignored", on=False),
    TamperWith("case"),
    InjectDefect("clock", arg=7),
    InjectDefect("clock", on=False),
    LineNoise(flip=0.1),
    LineNoise(),
    Plug(connected=False),
    Plug(connected=True, other_port=True),
    Freeze(on=True),
    Freeze(on=False),
    RingMemory("save"),
    RingMemory("restore"),
    RingMemory("replace"),
    Firmware("2.0"),
)
LAST: Final[tuple[ControlRequest, ...]] = (
    CutPower(at="in_commit"),
    RingMemory("fill"),
    CutPower(),
)
OWN: Final[dict[Profile, tuple[ControlRequest, ...]]] = {
    "shoe": (
        Load(cards=("Ac", "2c", "cut"), decks=1),
        Draw(force=True),
        Retract(),
        MoveCover(open=True),
        MoveCover(open=True),
        MoveCover(open=False),
        SetJam("stuck"),
        SetJam(None),
    ),
    "shuffler": (
        Put(decks=1),
        MoveDoor(open=True),
        MoveDoor(open=False),
        ShufflePace(shuffle_ms=10),
        SetJam("motor"),
        SetJam(None),
    ),
    "station": (
        Press(1, "hit", held_ms=None),
        LetGo(1, "hit"),
        Chord(1, ("yes", "no")),
        SetLamp(1),
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
        if type(hand) is RingMemory and hand.what == "fill":  # it ran into the cut before it
            assert answer == {"power": "cut", "at": "in_commit"}
        else:
            check(answer, ANSWERS[type(hand)])
        asyncio.run(rig.wire.sleep(rig.wire.now() + 1_000_000))
        looked = rig.request(Describe())
        check(looked, ANSWERS[Describe])
        check(looked["mechanism"], MECHANISM[profile])
        for seat in looked["mechanism"].get("seats", {}).values():
            check(seat, SEAT)
            check(seat["lamps"], LAMPS)
        done.add(type(hand))
    assert {type(hand) for hand in OWN[profile]} <= done


def test_every_verb_has_its_answer() -> None:
    tried = {type(hand) for many in (EVERYWHERE, LAST, *OWN.values()) for hand in many}
    assert set(ANSWERS) == set(ALL.values()) == tried | {Describe}
    told = [one for many in (*ANSWERS.values(), *MECHANISM.values(), SEAT, LAMPS) for one in many]
    assert {one.kind.removesuffix(OR_NULL) for one in told} == set(KINDS) == set(IS)
    names = {one.name for one in told}
    for path in READ_BY_CONFORM:
        assert set(path.split(".")) - {"N"} <= names
