"""The station's driver: presses under the arm that is wanted, and what else it tells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    LinkState,
    NotReady,
    StationDriver,
)
from drivers.devices.station import (
    DARK,
    LAMPS_OFF,
    LEASE_MS,
    ButtonPressed,
    ButtonReleased,
    ButtonStuck,
    LampBroken,
    LampSetting,
)
from firmware_protocol.device import Chord, CutPower, Describe, Plug, Press, SetLamp
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import (
    Arm,
    Button,
    BuzzPattern,
    DeviceClass,
    Edge,
    LampPattern,
    Lamps,
    OutOfRange,
    ProtocolError,
    Refusal,
    WhichButton,
)
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import FakeLine, line_to
from tests.support.drivers.seated import ALL, BLUE, at_station, seat
from tests.support.drivers.simulated import (
    Plugged,
    Watched,
    now_us,
    running,
    stopped,
    supervised,
)

# --- buttons --------------------------------------------------------------------------------------


@supervised
async def test_a_press_comes_down_and_up_with_its_token(
    device: Plugged, watched: Watched, station: StationDriver
) -> None:
    await station.arm(1, ALL, 0x1234, 5000)
    device.request(Press(seat=1, button="hit", held_ms=120))
    await asyncio.sleep(1)
    down, up = watched.events()[1:]
    assert isinstance(down, ButtonPressed)
    assert isinstance(up, ButtonReleased)
    for one in (down, up):
        facts = one.seat, one.button, one.press, one.token, one.stale
        assert facts == (1, WhichButton.HIT, 1, 0x1234, False)
    assert 100 <= up.held_ms <= 140
    device.request(Chord(seat=1, buttons=("stand", "hit")))
    await asyncio.sleep(1)
    names = [one.button.name for one in watched.events() if isinstance(one, ButtonPressed)]
    assert names == ["STAND", "HIT"]
    device.request(Press(seat=1, button="call"))
    await station.disarm(1)
    device.request(Press(seat=1, button="hit"))
    await asyncio.sleep(1)
    assert watched.events() == []


def stale(line: FakeLine, token: int, where: int = 1, edge: Edge = Edge.DOWN) -> bool:
    """Whether a press under this token comes too late."""
    event = line.comes(Button(where, WhichButton.HIT, edge, 0, 1, token))
    assert isinstance(event, ButtonPressed | ButtonReleased)
    return event.stale


@simulated
async def test_a_press_under_another_arm_than_the_wanted_one_is_stale() -> None:
    line, station = line_to(DeviceClass.STATION)
    assert stale(line, 7)
    await station.arm(1, ALL, 7, 1000)
    assert [stale(line, 7), stale(line, 7, edge=Edge.UP), stale(line, 7, 2)] == [False, False, True]
    await station.arm(2, ALL, 8, 1000)
    assert not stale(line, 8, 2)
    # The table has moved on: the finger was too late.
    await station.arm(1, ALL, 9, 1000)
    assert [stale(line, 7), stale(line, 7, edge=Edge.UP), stale(line, 9)] == [True, True, False]
    await station.disarm(1)
    assert [stale(line, 9), stale(line, 8, 2)] == [True, False]
    # With its session the station disarms itself.
    line.stands(LinkState.LOST)
    assert stale(line, 8, 2)
    assert station.armed == {}


@pytest.mark.parametrize(
    "problem",
    [
        CommandUnansweredError(Arm(1, ALL, 2, 9), sent=True),
        CommandRefusedError(Arm(1, ALL, 2, 9), Refusal.FAILED, 0),
    ],
    ids=lambda problem: type(problem).__name__,
)
@simulated
async def test_an_arm_that_was_sent_leaves_no_former_one_in_force(problem: Exception) -> None:
    line, station = line_to(DeviceClass.STATION)
    await station.arm(1, ALL, 1, 1000)
    line.answers = [problem]
    with pytest.raises(type(problem)):
        await station.arm(1, ALL, 2, 1000)
    assert stale(line, 1)
    assert station.armed == {1: 2}


@pytest.mark.parametrize(
    "problem",
    [
        NotReady(LinkState.UNKEPT, "the disk is full"),
        LinkBusy("too many"),
        CommandUnansweredError(Arm(1, ALL, 2, 9), sent=False),
    ],
    ids=lambda problem: type(problem).__name__,
)
@simulated
async def test_an_arm_that_was_not_sent_changes_nothing(problem: Exception) -> None:
    line, station = line_to(DeviceClass.STATION)
    for armed in ({}, {1: 1}):
        line.answers = [problem]
        with pytest.raises(type(problem)):
            await station.arm(1, ALL, 2, 1000)
        assert station.armed == armed
        await station.arm(1, ALL, 1, 1000)
    assert [stale(line, 1), stale(line, 2)] == [False, True]


@pytest.mark.parametrize("where", [0, 16])
@pytest.mark.parametrize("ttl_ms", [-1, 1000])
@simulated
async def test_an_arm_that_is_no_command_changes_nothing(where: int, ttl_ms: int) -> None:
    line, station = line_to(DeviceClass.STATION)
    await station.arm(1, ALL, 1, 1000)
    with pytest.raises(OutOfRange):
        await station.arm(1 if ttl_ms < 0 else where, ALL, 2, ttl_ms)
    assert station.armed == {1: 1}
    assert (stale(line, 1), len(line.called)) == (False, 1)


@simulated
async def test_an_arm_that_was_not_sent_takes_no_later_one_back() -> None:
    line, station = line_to(DeviceClass.STATION)
    call, may_fail = line.call, asyncio.Event()

    async def late(command: Any) -> Any:
        if isinstance(command, Arm) and command.token == 2:
            await may_fail.wait()
            raise CommandUnansweredError(command, sent=False)
        return await call(command)

    line.call = late  # type: ignore[method-assign]
    await station.arm(1, ALL, 1, 1000)
    failing = asyncio.create_task(station.arm(1, ALL, 2, 1000))
    await asyncio.sleep(0.01)
    await station.arm(1, ALL, 3, 1000)
    may_fail.set()
    with pytest.raises(CommandUnansweredError):
        await failing
    assert station.armed == {1: 3}


@simulated
async def test_a_watch_for_presses_sees_them() -> None:
    line, station = line_to(DeviceClass.STATION)
    await station.arm(1, ALL, 1, 1000)
    with station.watching(ButtonPressed) as watch:
        assert not stale(line, 1)
        async with asyncio.timeout(1):
            seen = await watch.first(lambda event: event.token == 1)
    assert not seen.stale


@supervised
async def test_an_arm_is_the_tables_wish_and_is_never_renewed(
    device: Plugged, watched: Watched, station: StationDriver
) -> None:
    await station.arm(1, ALL, 5, 800)
    await asyncio.sleep(0.7)
    assert seat(device)["armed"] == ["hit", "stand"]
    await asyncio.sleep(0.2)
    assert seat(device)["armed"] == []
    await station.arm(1, ALL, 6, 60_000)
    device.request(Plug(connected=False))
    await asyncio.sleep(2)
    device.request(Plug(connected=True))
    await watched.until(LinkState.READY)
    await asyncio.sleep(2)
    assert (seat(device)["armed"], station.armed) == ([], {})


@supervised
async def test_the_rest_of_what_a_station_tells(
    device: Plugged, watched: Watched, station: StationDriver
) -> None:
    device.request(Press(seat=1, button="bet", held_ms=None))
    device.request(SetLamp(seat=1, index=3))
    await station.lamps(1, BLUE)
    await station.buzz(BuzzPattern.TURN)
    assert device.request(Describe())["mechanism"]["buzz"] == "turn"
    await asyncio.sleep(12)
    _, broken, stuck = watched.events()
    assert stuck == ButtonStuck(stuck.origin, 1, WhichButton.BET)
    assert broken == LampBroken(broken.origin, 1, 3)


def lit(device: Plugged) -> bool:
    lamps = seat(device)["lamps"]
    return lamps["pattern"] != "off" and any(lamps["rgb"])


@supervised
async def test_lamps_stay_lit_while_they_are_wanted(
    device: Plugged, station: StationDriver
) -> None:
    await station.lamps(1, BLUE)
    for _ in range(100):
        await asyncio.sleep(0.1)
        assert lit(device)
    assert station.settings == {1: BLUE}
    await station.lamps(1, LAMPS_OFF)
    assert not lit(device)
    await asyncio.sleep(5)
    assert (lit(device), station.settings) == (False, {})


@simulated
async def test_lamps_go_dark_by_themselves_without_a_host(tmp_path: Path) -> None:
    async with at_station(tmp_path) as (_, device, watched):
        station: StationDriver = watched.driver
        async with running(watched):
            await watched.ready()
            await station.lamps(1, BLUE)
            await asyncio.sleep(3)
        assert lit(device)
        await asyncio.sleep(LEASE_MS / 1000)
        assert not lit(device)


@pytest.mark.parametrize("away", [Plug(connected=False), CutPower(off_ms=3000)])
@supervised
async def test_lamps_come_back_with_the_station(
    device: Plugged, watched: Watched, station: StationDriver, away: Any
) -> None:
    await station.lamps(1, BLUE)
    device.request(away)
    await asyncio.sleep(4)
    if isinstance(away, Plug):
        assert not lit(device)
        device.request(Plug(connected=True))
    await asyncio.sleep(2)
    await watched.until(LinkState.READY)
    await asyncio.sleep(0.1)
    assert lit(device)
    assert seat(device)["lamps"]


@simulated
async def test_leases_are_taken_anew_at_half_time() -> None:
    line, station = line_to(DeviceClass.STATION)
    task = asyncio.create_task(station.work())
    began = now_us()
    times: list[float] = []
    call = line.call

    async def noted(command: Any) -> Any:
        times.append((now_us() - began) / 1000)
        return await call(command)

    line.call = noted  # type: ignore[method-assign]
    await station.lamps(1, LampSetting(b"abc", LampPattern.STEADY, 0, 600))
    await asyncio.sleep(1.25)
    await station.lamps(1, LampSetting(b"xyz", LampPattern.STEADY, 0, 1000))
    await asyncio.sleep(1.1)
    assert times == pytest.approx([0, 300, 600, 900, 1200, 1250, 1750, 2250], abs=0.1)
    rgbs = [one.rgb for one in line.called if isinstance(one, Lamps)]
    assert rgbs == [b"abc"] * 5 + [b"xyz"] * 3
    await stopped(task)


@pytest.mark.parametrize("why", [Refusal.UNSUPPORTED, Refusal.MALFORMED, Refusal.UNKNOWN])
@simulated
async def test_what_a_station_cannot_do_is_not_asked_for_ever(why: Refusal) -> None:
    line, station = line_to(DeviceClass.STATION)
    task = asyncio.create_task(station.work())
    await station.lamps(1, BLUE)
    line.answers = [
        CommandUnansweredError(BLUE.command(1), sent=True),
        CommandRefusedError(BLUE.command(1), why, 5),
    ]
    await asyncio.sleep(10)
    assert (len(line.called), station.settings) == (3, {})
    await stopped(task)


@pytest.mark.parametrize(
    "why", sorted(set(Refusal) - {Refusal.UNSUPPORTED, Refusal.MALFORMED, Refusal.UNKNOWN})
)
@simulated
async def test_what_a_station_does_not_do_now_is_asked_again(why: Refusal) -> None:
    line, station = line_to(DeviceClass.STATION)
    task = asyncio.create_task(station.work())
    await station.lamps(1, BLUE)
    line.answers = [CommandRefusedError(BLUE.command(1), why, 5)] * 3
    await asyncio.sleep(4.5)
    assert (len(line.called), line.answers, station.settings) == (5, [], {1: BLUE})
    await stopped(task)


@pytest.mark.parametrize("wanted", [None, LampSetting(b"xyz", LampPattern.STEADY, 0, 60_000)])
@simulated
async def test_the_table_may_change_its_mind_while_leases_are_taken(
    wanted: LampSetting | None,
) -> None:
    line, station = line_to(DeviceClass.STATION)
    task = asyncio.create_task(station.work())
    for where in (1, 2, 3):
        await station.lamps(where, BLUE)
    call, asked = line.call, line.called.copy()

    async def slow(command: Any) -> Any:
        if command == BLUE.command(1):
            await asyncio.sleep(0.1)
            await station.lamps(2, wanted or LAMPS_OFF)
        return await call(command)

    line.call = slow  # type: ignore[method-assign]
    await asyncio.sleep(1.5)
    assert not task.done(), task.exception()
    second = [one for one in line.called[len(asked) :] if one.seat == 2]  # type: ignore[attr-defined]
    assert second == [(wanted or LAMPS_OFF).command(2)]
    assert {1, 3} <= set(station.settings)
    await stopped(task)


@simulated
async def test_a_setting_that_is_no_command_is_not_stored() -> None:
    line, station = line_to(DeviceClass.STATION)
    for where, wish in (
        (0, BLUE),
        (16, BLUE),
        (1, LampSetting(b"ab")),
        (1, LampSetting(DARK, period_ms=-1)),
    ):
        with pytest.raises(ProtocolError):
            await station.lamps(where, wish)
    assert (station.settings, line.called) == ({}, [])
