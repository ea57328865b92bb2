"""The lamps and the buzzer of the simulated station."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firmware_protocol.device import Mechanism, SetLamp
from firmware_protocol.messages import (
    Buzz,
    BuzzPattern,
    BuzzReply,
    Capabilities,
    FaultCode,
    LampFault,
    LampPattern,
    Lamps,
    LampsReply,
    Refusal,
)
from hil.devices import SimulatedStation
from hil.devices.station import BUZZ_MS
from tests.support.hil.devices.desk import Scene, cannot

RED = b"\xff\x10\x00"


def two_lamps() -> SimulatedStation:
    return SimulatedStation(lamps_per_seat=2)


def lit(
    pattern: LampPattern,
    *breaks: str,
    period: int = 1000,
    lease: int = 60_000,
    rgb: bytes = RED,
    make: Callable[[], Mechanism] = two_lamps,
) -> Scene:
    scene = Scene(make, *breaks)
    assert scene.call(Lamps(1, rgb, pattern, period, lease)) == LampsReply()
    return scene


def lamps(scene: Scene, seat: int = 1) -> dict[str, Any]:
    found = scene.look()["seats"][str(seat)]["lamps"]
    assert isinstance(found, dict)
    return found


def levels(scene: Scene, step_ms: int, count: int) -> list[list[int]]:
    """The brightness of each lamp, every so often."""
    out = []
    for _ in range(count):
        out.append(lamps(scene)["percent"])
        scene.run(ms=step_ms)
    return out


def test_dark_before_anything_was_said() -> None:
    scene = Scene(two_lamps)
    assert lamps(scene) == {
        "rgb": [0, 0, 0],
        "pattern": "off",
        "period_ms": 0,
        "lit": False,
        "percent": [0, 0],
        "lease_ms": 0,
        "broken": [],
    }


def test_lamps_display_a_command_until_the_lease_ends() -> None:
    scene = lit(LampPattern.STEADY, period=7, lease=500)
    assert lamps(scene) == {
        "rgb": [255, 16, 0],
        "pattern": "steady",
        "period_ms": 7,
        "lit": True,
        "percent": [100, 100],
        "lease_ms": 500,
        "broken": [],
    }
    scene.run(ms=499.999)
    assert lamps(scene)["lit"]
    scene.run(ms=0.001)
    assert lamps(scene) == lamps(Scene(two_lamps))


@pytest.mark.parametrize(
    ("pattern", "seen"),
    [
        (LampPattern.OFF, [[0, 0]] * 5),
        (LampPattern.STEADY, [[100, 100]] * 5),
        (LampPattern.BLINK, [[100, 100], [100, 100], [0, 0], [0, 0], [100, 100]]),
        (LampPattern.PULSE, [[0, 0], [50, 50], [100, 100], [50, 50], [0, 0]]),
        (LampPattern.CHASE, [[100, 0], [100, 0], [0, 100], [0, 100], [100, 0]]),
    ],
)
def test_every_pattern(pattern: LampPattern, seen: list[list[int]]) -> None:
    assert levels(lit(pattern), 250, 5) == seen


@pytest.mark.parametrize("pattern", list(LampPattern)[2:])
def test_no_period_means_steady(pattern: LampPattern) -> None:
    assert levels(lit(pattern, period=0), 250, 3) == [[100, 100]] * 3


def test_no_lease_is_dark_at_once() -> None:
    assert not lamps(lit(LampPattern.STEADY, lease=0))["lit"]


def test_the_next_word_replaces_the_last() -> None:
    scene = lit(LampPattern.STEADY).play(Lamps(1, b"\0\0\x01", LampPattern.BLINK, 100, 200))
    assert lamps(scene)["rgb"] == [0, 0, 1]
    assert lamps(scene)["lease_ms"] == 200
    scene.call(Lamps(1, RED, LampPattern.OFF, 0, 200))
    assert not lamps(scene)["lit"]


def test_without_colour_the_largest_is_the_brightness() -> None:
    scene = lit(
        LampPattern.STEADY, make=lambda: SimulatedStation(colour=False), rgb=b"\x01\x20\x03"
    )
    assert Capabilities.COLOUR not in scene.mechanism.capabilities
    assert lamps(scene)["rgb"] == [0x20] * 3


def test_lamps_outlive_the_session_but_no_start() -> None:
    scene = lit(LampPattern.STEADY).play("safe")
    assert lamps(scene)["lit"]
    scene.desk.start(scene.mechanism, scene.now)
    assert not lamps(scene)["lit"]


def test_each_seat_has_its_own_lamps() -> None:
    scene = lit(LampPattern.STEADY, make=lambda: SimulatedStation(seats=(1, 2)))
    assert not lamps(scene, 2)["lit"]
    assert scene.refused(Lamps(3, RED, LampPattern.STEADY, 0, 1)) == Refusal.UNSUPPORTED


# --- broken lamps ---------------------------------------------------------------------------


def test_a_broken_lamp_is_noticed_once_while_it_should_light() -> None:
    scene = lit(LampPattern.STEADY).play(SetLamp(1, 1))
    assert scene.events == [LampFault(1, 1)]
    assert lamps(scene)["percent"] == [100, 0]
    assert lamps(scene)["broken"] == [1]
    scene.play(Lamps(1, RED, LampPattern.BLINK, 100, 1000), SetLamp(1, 1))
    assert len(scene.events) == 1
    assert scene.mechanism.selftest(scene.now) == ((FaultCode.LAMPS, 0),)
    scene.do(SetLamp(1, 1, broken=False))
    assert scene.mechanism.selftest(scene.now) == ()
    assert lamps(scene)["percent"] == [100, 100]
    scene.do(SetLamp(1, 1))
    assert len(scene.events) == 2


def test_a_lamp_that_breaks_in_the_dark_is_noticed_when_it_should_light() -> None:
    scene = Scene(two_lamps).play(
        SetLamp(1, 1),
        SetLamp(1, 0),
        Lamps(1, RED, LampPattern.OFF, 0, 1000),
        Lamps(1, b"\0\0\0", LampPattern.STEADY, 0, 1000),
        Lamps(1, RED, LampPattern.STEADY, 0, 0),
    )
    assert not scene.events
    scene.call(Lamps(1, RED, LampPattern.PULSE, 100, 1000))
    assert scene.events == [LampFault(1, 0), LampFault(1, 1)]
    assert not lamps(scene)["lit"]


def test_a_new_start_notices_it_again() -> None:
    scene = lit(LampPattern.STEADY).play(SetLamp(1, 0))
    scene.desk.start(scene.mechanism, scene.now)
    scene.call(Lamps(1, RED, LampPattern.STEADY, 0, 1000))
    assert scene.events == [LampFault(1, 0)] * 2


def test_without_a_check_a_broken_lamp_is_only_seen() -> None:
    scene = lit(LampPattern.STEADY, make=lambda: SimulatedStation(lamp_check=False)).play(
        SetLamp(1, 0)
    )
    assert not scene.events
    assert scene.mechanism.selftest(scene.now) == ()
    assert lamps(scene)["percent"][:2] == [0, 100]


def test_lamps_that_are_not_there() -> None:
    scene = Scene(two_lamps)
    cannot(scene, SetLamp(1, 2), "lamps 0 to 1")
    cannot(scene, SetLamp(2, 0), "no seat 2")


# --- the buzzer -----------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", list(BuzzPattern)[1:])
def test_a_sound_plays_once(pattern: BuzzPattern) -> None:
    scene = Scene(SimulatedStation)
    assert scene.call(Buzz(pattern)) == BuzzReply()
    assert (scene.look()["buzz"], scene.look()["buzzes"]) == (pattern.name.lower(), 1)
    scene.run(ms=BUZZ_MS[pattern])
    assert (scene.look()["buzz"], scene.look()["buzzes"]) == ("off", 1)


def test_a_sound_can_be_ended() -> None:
    scene = Scene(SimulatedStation).play(Buzz(BuzzPattern.ALARM), Buzz(BuzzPattern.OFF))
    assert scene.look()["buzz"] == "off"


def test_without_a_buzzer() -> None:
    scene = Scene(lambda: SimulatedStation(buzzer=False))
    assert scene.refused(Buzz(BuzzPattern.TICK)) == Refusal.UNSUPPORTED
