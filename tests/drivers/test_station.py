"""The station's driver: presses under the arm that is wanted, lamps as long as they are wanted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drivers.calls import CommandRefused, CommandUnanswered
from drivers.states import State
from drivers.station import (
    DARK,
    LEASE_MS,
    ButtonPressed,
    ButtonReleased,
    ButtonStuck,
    LampBroken,
    Station,
    Wish,
)
from firmware_protocol import errors
from firmware_protocol.enums import (
    ButtonMask,
    BuzzPattern,
    DeviceClass,
    Edge,
    LampPattern,
    Refusal,
    WhichButton,
)
from firmware_protocol.messages_station import Arm, Button, Lamps
from hil.device.hands import Chord, Describe, LampHand, Plug, Power, Press
from tests.drivers.fake_line import FakeLine
from tests.drivers.simulated import Plugged, now_us, running, simulate, stopped, table

BLUE = Wish(bytes((0, 0, 255)), LampPattern.BLINK, 1000)
ALL = ButtonMask.HIT | ButtonMask.STAND


def at_station(tmp_path: Path) -> Any:
    return table(tmp_path, DeviceClass.STATION, "ST-1")


def seat(device: Plugged) -> Any:
    return device.hand(Describe())["mechanism"]["seats"]["1"]


# --- buttons --------------------------------------------------------------------------------------


def test_a_press_comes_down_and_up_with_its_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                await station.arm(1, ALL, 0x1234, 5000)
                device.hand(Press(seat=1, button="hit", held_ms=120))
                await asyncio.sleep(1)
                down, up = watched.events()[1:]
                assert isinstance(down, ButtonPressed)
                assert isinstance(up, ButtonReleased)
                for one in (down, up):
                    assert (one.seat, one.button, one.press) == (1, WhichButton.HIT, 1)
                    assert (one.token, one.stale) == (0x1234, False)
                assert 100 <= up.held_ms <= 140
                device.hand(Chord(seat=1, buttons=("stand", "hit")))
                await asyncio.sleep(1)
                pressed = [one for one in watched.events() if isinstance(one, ButtonPressed)]
                assert [one.button.name for one in pressed] == ["STAND", "HIT"]
                device.hand(Press(seat=1, button="call"))
                await station.disarm(1)
                device.hand(Press(seat=1, button="hit"))
                await asyncio.sleep(1)
                assert watched.events() == []

    simulate(main())


def test_a_press_under_another_arm_than_the_wanted_one_is_stale() -> None:
    async def main() -> None:
        line = FakeLine(DeviceClass.STATION)
        station = Station(line)

        def press(token: int, where: int = 1, edge: Edge = Edge.DOWN) -> bool:
            event = line.comes(Button(where, WhichButton.HIT, edge, 0, 1, token))
            assert isinstance(event, ButtonPressed | ButtonReleased)
            return event.stale

        assert press(7)
        await station.arm(1, ALL, 7, 1000)
        assert not press(7)
        assert not press(7, edge=Edge.UP)
        assert press(7, where=2)
        await station.arm(2, ALL, 8, 1000)
        assert not press(8, where=2)
        # The table has moved on: the finger was too late.
        await station.arm(1, ALL, 9, 1000)
        assert press(7)
        assert press(7, edge=Edge.UP)
        assert not press(9)
        await station.disarm(1)
        assert press(9)
        assert not press(8, where=2)
        # With its session the station disarms itself.
        line.stands(State.LOST)
        assert press(8, where=2)
        assert station.armed == {}

    simulate(main())


@pytest.mark.parametrize(
    "problem", [CommandUnanswered(Arm(1, ALL, 2, 9), sent=True), errors.OutOfRange("no such seat")]
)
def test_an_arm_that_failed_leaves_no_former_one_in_force(problem: Exception) -> None:
    async def main() -> None:
        line = FakeLine(DeviceClass.STATION)
        station = Station(line)
        await station.arm(1, ALL, 1, 1000)
        line.answers = [problem]
        with pytest.raises(type(problem)):
            await station.arm(1, ALL, 2, 1000)
        event = line.comes(Button(1, WhichButton.HIT, Edge.DOWN, 0, 1, 1))
        assert isinstance(event, ButtonPressed)
        assert event.stale

    simulate(main())


def test_an_arm_is_the_tables_wish_and_is_never_renewed(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                await station.arm(1, ALL, 5, 800)
                await asyncio.sleep(0.7)
                assert seat(device)["armed"] == ["hit", "stand"]
                await asyncio.sleep(0.2)
                assert seat(device)["armed"] == []
                await station.arm(1, ALL, 6, 60_000)
                device.hand(Plug(connected=False))
                await asyncio.sleep(2)
                device.hand(Plug(connected=True))
                await watched.until(State.READY)
                await asyncio.sleep(2)
                assert seat(device)["armed"] == []
                assert station.armed == {}

    simulate(main())


def test_the_rest_of_what_a_station_tells(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                device.hand(Press(seat=1, button="bet", held_ms=None))
                device.hand(LampHand(seat=1, index=3))
                await station.lamps(1, BLUE)
                await station.buzz(BuzzPattern.TURN)
                assert device.hand(Describe())["mechanism"]["buzz"] == "turn"
                await asyncio.sleep(12)
                _, broken, stuck = watched.events()
                assert isinstance(stuck, ButtonStuck)
                assert (stuck.seat, stuck.button) == (1, WhichButton.BET)
                assert isinstance(broken, LampBroken)
                assert (broken.seat, broken.index) == (1, 3)

    simulate(main())


# --- lamps ----------------------------------------------------------------------------------------


def lit(device: Plugged) -> bool:
    stand = device.stand.device.mechanism
    lamps = stand._lamps[1].shown  # type: ignore[attr-defined]
    return bool(lamps.lights(now_us() - device.stand._lag))


def test_lamps_stay_lit_while_they_are_wanted(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                await station.lamps(1, BLUE)
                for _ in range(100):
                    await asyncio.sleep(0.1)
                    assert lit(device)
                assert station.wishes == {1: BLUE}
                await station.dark(1)
                assert not lit(device)
                await asyncio.sleep(5)
                assert not lit(device)
                assert station.wishes == {}

    simulate(main())


def test_lamps_go_dark_by_themselves_without_a_host(tmp_path: Path) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                await station.lamps(1, BLUE)
                await asyncio.sleep(3)
            assert lit(device)
            await asyncio.sleep(LEASE_MS / 1000)
            assert not lit(device)

    simulate(main())


@pytest.mark.parametrize("away", [Plug(connected=False), Power(off_ms=3000)])
def test_lamps_come_back_with_the_station(tmp_path: Path, away: Any) -> None:
    async def main() -> None:
        async with at_station(tmp_path) as (_, device, watched):
            station = Station(watched.supervisor)
            async with running(watched):
                await watched.ready()
                await station.lamps(1, BLUE)
                device.hand(away)
                await asyncio.sleep(4)
                if isinstance(away, Plug):
                    assert not lit(device)
                    device.hand(Plug(connected=True))
                await asyncio.sleep(2)
                await watched.until(State.READY)
                await asyncio.sleep(0.1)
                assert lit(device)
                assert seat(device)["lamps"]

    simulate(main())


def test_leases_are_taken_anew_at_half_time() -> None:
    async def main() -> None:
        line = FakeLine(DeviceClass.STATION)
        station = Station(line)
        task = asyncio.create_task(station.work())
        began = now_us()
        times: list[float] = []
        call = line.call

        async def noted(command: Any) -> Any:
            times.append((now_us() - began) / 1000)
            return await call(command)

        line.call = noted  # type: ignore[method-assign]
        await station.lamps(1, Wish(b"abc", LampPattern.STEADY, 0, 600))
        await asyncio.sleep(1.25)
        await station.lamps(1, Wish(b"xyz", LampPattern.STEADY, 0, 1000))
        await asyncio.sleep(1.1)
        assert times == pytest.approx([0, 300, 600, 900, 1200, 1250, 1750, 2250], abs=0.1)
        lamps = [one for one in line.called if isinstance(one, Lamps)]
        assert [one.rgb for one in lamps] == [b"abc"] * 5 + [b"xyz"] * 3
        await stopped(task)

    simulate(main())


def test_what_a_station_refuses_is_not_asked_for_ever() -> None:
    async def main() -> None:
        line = FakeLine(DeviceClass.STATION)
        station = Station(line)
        task = asyncio.create_task(station.work())
        await station.lamps(1, BLUE)
        line.answers = [
            CommandUnanswered(BLUE.command(1), sent=True),
            CommandRefused(BLUE.command(1), Refusal.FAILED, 5),
        ]
        await asyncio.sleep(10)
        assert len(line.called) == 3
        assert station.wishes == {}
        await stopped(task)

    simulate(main())


def test_a_wish_that_is_no_command_is_not_kept() -> None:
    async def main() -> None:
        line = FakeLine(DeviceClass.STATION)
        station = Station(line)
        for where, wish in ((0, BLUE), (16, BLUE), (1, Wish(b"ab")), (1, Wish(DARK, period_ms=-1))):
            with pytest.raises(errors.ProtocolError):
                await station.lamps(where, wish)
        assert station.wishes == {}
        assert line.called == []

    simulate(main())
