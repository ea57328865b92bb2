"""Lamps: lit while they are wanted, dark when nobody wants them, and back with the station."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drivers.devices import CommandRefusedError, CommandUnansweredError, LinkState, StationDriver
from drivers.devices.station import DARK, LAMPS_OFF, LEASE_MS, LampSetting
from firmware_protocol.device import CutPower, Describe, Plug
from firmware_protocol.messages import DeviceClass, LampPattern, Lamps, ProtocolError, Refusal
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import FakeLine
from tests.support.drivers.seated import BLUE, at_station, seat
from tests.support.drivers.simulated import Plugged, now_us, running, stopped


def lit(device: Plugged) -> bool:
    lamps = device.request(Describe())["mechanism"]["seats"]["1"]["lamps"]
    return lamps["pattern"] != "off" and any(lamps["rgb"])


@simulated
async def test_lamps_stay_lit_while_they_are_wanted(tmp_path: Path) -> None:
    async with at_station(tmp_path) as (_, device, watched):
        station: StationDriver = watched.driver
        async with running(watched):
            await watched.ready()
            await station.lamps(1, BLUE)
            for _ in range(100):
                await asyncio.sleep(0.1)
                assert lit(device)
            assert station.settings == {1: BLUE}
            await station.lamps_off(1)
            assert not lit(device)
            await asyncio.sleep(5)
            assert not lit(device)
            assert station.settings == {}


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
@simulated
async def test_lamps_come_back_with_the_station(tmp_path: Path, away: Any) -> None:
    async with at_station(tmp_path) as (_, device, watched):
        station: StationDriver = watched.driver
        async with running(watched):
            await watched.ready()
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
    line = FakeLine(DeviceClass.STATION)
    station: StationDriver = line.driver
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
    lamps = [one for one in line.called if isinstance(one, Lamps)]
    assert [one.rgb for one in lamps] == [b"abc"] * 5 + [b"xyz"] * 3
    await stopped(task)


@pytest.mark.parametrize("why", [Refusal.UNSUPPORTED, Refusal.MALFORMED, Refusal.UNKNOWN])
@simulated
async def test_what_a_station_cannot_do_is_not_asked_for_ever(why: Refusal) -> None:
    line = FakeLine(DeviceClass.STATION)
    station: StationDriver = line.driver
    task = asyncio.create_task(station.work())
    await station.lamps(1, BLUE)
    line.answers = [
        CommandUnansweredError(BLUE.command(1), sent=True),
        CommandRefusedError(BLUE.command(1), why, 5),
    ]
    await asyncio.sleep(10)
    assert len(line.called) == 3
    assert station.settings == {}
    await stopped(task)


@pytest.mark.parametrize(
    "why", sorted(set(Refusal) - {Refusal.UNSUPPORTED, Refusal.MALFORMED, Refusal.UNKNOWN})
)
@simulated
async def test_what_a_station_does_not_do_now_is_asked_again(why: Refusal) -> None:
    line = FakeLine(DeviceClass.STATION)
    station: StationDriver = line.driver
    task = asyncio.create_task(station.work())
    await station.lamps(1, BLUE)
    line.answers = [CommandRefusedError(BLUE.command(1), why, 5)] * 3
    await asyncio.sleep(4.5)
    assert len(line.called) == 5
    assert line.answers == []
    assert station.settings == {1: BLUE}
    await stopped(task)


@pytest.mark.parametrize("wanted", [None, LampSetting(b"xyz", LampPattern.STEADY, 0, 60_000)])
@simulated
async def test_the_table_may_change_its_mind_while_leases_are_taken(
    wanted: LampSetting | None,
) -> None:
    line = FakeLine(DeviceClass.STATION)
    station: StationDriver = line.driver
    task = asyncio.create_task(station.work())
    for where in (1, 2, 3):
        await station.lamps(where, BLUE)
    call, asked = line.call, line.called.copy()

    async def slow(command: Any) -> Any:
        if command == BLUE.command(1):
            await asyncio.sleep(0.1)
            if wanted is None:
                await station.lamps_off(2)
            else:
                await station.lamps(2, wanted)
        return await call(command)

    line.call = slow  # type: ignore[method-assign]
    await asyncio.sleep(1.5)
    assert not task.done(), task.exception()
    second = [one for one in line.called[len(asked) :] if one.seat == 2]  # type: ignore[attr-defined]
    assert second == [(wanted or LAMPS_OFF).command(2)]
    assert {1, 3} <= set(station.settings)
    await stopped(task)


@simulated
async def test_a_wish_that_is_no_command_is_not_kept() -> None:
    line = FakeLine(DeviceClass.STATION)
    station: StationDriver = line.driver
    for where, wish in (
        (0, BLUE),
        (16, BLUE),
        (1, LampSetting(b"ab")),
        (1, LampSetting(DARK, period_ms=-1)),
    ):
        with pytest.raises(ProtocolError):
            await station.lamps(where, wish)
    assert station.settings == {}
    assert line.called == []
