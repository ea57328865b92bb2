"""The life of a supervised device: plugged in, pulled, swapped, frozen, refused, found again."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from drivers import events
from drivers.devices import LinkState, ShoeDriver
from drivers.ports import Address, PortLost, Transport
from drivers.session import PortSearch, WantedDevice, supervisor
from drivers.session.lookup import CLOSE_TIMEOUT
from drivers.session.opening import ANSWER_TIMEOUT
from firmware_protocol.device import (
    Break,
    CommandRefusal,
    CutPower,
    Draw,
    Firmware,
    Freeze,
    Load,
    Plug,
)
from firmware_protocol.host import HostLink, SessionEnding
from firmware_protocol.messages import PowerCause, Refusal
from hil.faults import FaultyBehaviour
from tests.support.asynchronous import simulated
from tests.support.drivers.holding import mute_on_resume
from tests.support.drivers.simulated import (
    Desk,
    Plugged,
    SimPort,
    Watched,
    never,
    now_us,
    running,
    stopped,
    supervised,
    table,
    until,
    when_ready,
)

S = LinkState
COMES_UP = [S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY]


async def draws(device: Plugged, watched: Watched, count: int) -> None:
    """Cards go out of the shoe and arrive."""
    shoe: ShoeDriver = watched.driver
    await shoe.open_gate()
    head = device.stand.firmware.ring.head
    device.request(Draw(count=count))
    await until(lambda: watched.store.cursor().seq == head + count)


def exactly_once(watched: Watched) -> bool:
    seqs: list[int] = watched.store.seqs
    return seqs == list(range(1, len(seqs) + 1))


# --- plugging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other_port", [False, True])
@when_ready
async def test_pulled_and_plugged_in_again(
    device: Plugged, watched: Watched, other_port: bool
) -> None:
    assert watched.states == COMES_UP
    device.request(Load(decks=1))
    await draws(device, watched, 3)
    device.request(Plug(connected=False))
    assert (watched.state, watched.supervisor.why) == (S.LOST, "unplugged")
    await asyncio.sleep(10)
    assert watched.states[4:] == [S.LOST, S.OPENING, S.ABSENT]
    plugged_at = now_us()
    device.request(Plug(connected=True, other_port=other_port))
    await watched.until(S.READY)
    assert now_us() - plugged_at <= 1_100_000
    assert watched.states[7:] == COMES_UP
    await draws(device, watched, 3)
    assert exactly_once(watched)
    assert [one.port for one in watched.of(events.PortOpened)] == [
        "/dev/sim1",
        "/dev/sim2" if other_port else "/dev/sim1",
    ]
    assert [(gone.port, gone.why) for gone in watched.of(events.PortGone)] == [
        ("/dev/sim1", "unplugged")
    ]
    assert watched.whys(events.SessionEnded) == [SessionEnding.CLOSED]


@when_ready
async def test_a_short_loss_of_contact_is_over_at_once(device: Plugged, watched: Watched) -> None:
    await asyncio.sleep(3)
    for _ in range(3):
        device.request(Plug(connected=False))
        await asyncio.sleep(0.05)
        device.request(Plug(connected=True))
        away = now_us()
        await watched.until(S.READY)
        assert now_us() - away <= 60_000
        await asyncio.sleep(2)


@simulated
async def test_the_port_of_a_named_address_comes_back(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, _):
        wanted = replace(device.wanted, address=Address(Transport.SERIAL, "/dev/sim1"))
        named = Watched(desk, wanted, find=PortSearch())
        async with running(named):
            await named.ready()
            device.request(Plug(connected=False))
            await named.until(S.ABSENT)
            assert named.supervisor.why == "serial:/dev/sim1: no such port"
            device.request(Plug(connected=True))
            await named.until(S.READY)


@simulated
async def test_tries_are_fast_at_first_and_never_faster_than_once_a_second_later(
    tmp_path: Path,
) -> None:
    async with table(tmp_path) as (desk, device, _):
        device.request(Plug(connected=False))
        times: list[int] = []

        async def noted(wanted: WantedDevice) -> Address:
            times.append(now_us() // 1000)
            where: Address = await desk.find(wanted)
            return where

        watched = Watched(desk, device.wanted, find=noted)
        async with running(watched):
            await asyncio.sleep(6.2)
        waits = [after - before for before, after in pairwise(times)]
        assert waits == [100, 200, 400, 800, 1000, 1000, 1000, 1000]
        # It was absent from the start: nothing has changed, and nothing was told.
        assert watched.happenings == []


@supervised
async def test_a_port_that_cannot_be_opened_is_said_once(desk: Desk, watched: Watched) -> None:
    desk.refusal = "in use by another program"
    await asyncio.sleep(10)
    assert (watched.state, watched.supervisor.why) == (S.OPENING, "in use by another program")
    assert watched.whys(events.PortDenied) == [desk.refusal]
    desk.refusal = "permission denied"
    await asyncio.sleep(10)
    desk.refusal = None
    await watched.ready()
    assert watched.whys(events.PortDenied) == [
        "in use by another program",
        "permission denied",
    ]


# --- the device itself ----------------------------------------------------------------------------


@when_ready
async def test_other_firmware_and_starts_are_reported(device: Plugged, watched: Watched) -> None:
    old = device.stand.firmware.identity.digest
    device.request(Firmware(version="holecard-sim-2"))
    await until(lambda: bool(watched.of(events.FirmwareChanged)) and watched.state is S.READY)
    assert [(one.old, one.new) for one in watched.of(events.FirmwareChanged)] == [
        (old, device.stand.firmware.identity.digest)
    ]
    device.request(CutPower(cause="watchdog"))
    await until(lambda: len(watched.of(events.Restarted)) == 2)
    assert [(one.old, one.new) for one in watched.of(events.Restarted)] == [(1, 2), (2, 3)]
    assert watched.of(events.Restarted)[1].cause is PowerCause.WATCHDOG
    await watched.until(S.READY)
    assert (len(watched.of(events.FirmwareChanged)), exactly_once(watched)) == (1, True)


@simulated
async def test_firmware_that_is_not_in_the_record_is_reported_at_once(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, _):
        watched = Watched(desk, replace(device.wanted, firmware=bytes(32), boot=7))
        async with running(watched):
            await watched.ready()
            assert watched.of(events.FirmwareChanged)[0].old == bytes(32)
            assert watched.of(events.Restarted)[0].old == 7


@pytest.mark.parametrize("seconds", [0.4, 1.5, 8, 40])
@when_ready
async def test_a_frozen_device_is_found_again(
    device: Plugged, watched: Watched, seconds: float
) -> None:
    device.request(Load(decks=1))
    await draws(device, watched, 2)
    device.request(Freeze(on=True))
    await asyncio.sleep(seconds)
    if seconds > 1:
        assert watched.state is not S.READY
        assert SessionEnding.SILENT in watched.whys(events.SessionEnded)
    device.request(Freeze(on=False))
    thawed = now_us()
    await watched.until(S.READY)
    assert now_us() - thawed < 10_000_000
    await draws(device, watched, 2)
    assert exactly_once(watched)


@simulated
async def test_a_port_without_an_answer_is_opened_anew(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        device.request(CutPower(off_ms=60_000))
        async with running(watched):
            await asyncio.sleep(5 * ANSWER_TIMEOUT)
            assert 4 <= device.opened <= 5
            assert watched.of(events.StateChanged)[1].why == ("no session came about within 10 s")
            assert len(watched.of(events.AttemptFailed)) == 1
            await watched.ready(within=25)


@pytest.mark.parametrize("refused", [False, True])
@simulated
async def test_a_device_that_does_not_report_its_ring_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    def refuse(*_: object) -> None:
        raise CommandRefusal(Refusal.FAILED)

    if refused:
        monkeypatch.setattr(FaultyBehaviour, "verdict", refuse)
    else:
        monkeypatch.setattr(FaultyBehaviour, "reply_after", mute_on_resume)
    async with table(tmp_path) as (_, _, watched), running(watched):
        await asyncio.sleep(4 * ANSWER_TIMEOUT)
        assert set(watched.states) == {*COMES_UP, S.LOST, S.OPENING} - {S.READY}
        assert "RESUME was not answered within 10 s" in watched.whys(events.StateChanged)
        sessions = len(watched.of(events.SessionBegan))
        assert 3 <= sessions <= 5
        assert len(watched.of(events.CommandOverdue)) == (0 if refused else sessions)
        assert len(watched.of(events.CommandRefused)) == (sessions if refused else 0)


@simulated
async def test_new_keys_interrupt_no_command_and_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "HostLink", partial(HostLink, session_life_us=3_000_000))
    async with table(tmp_path) as (_, device, watched), running(watched):
        await watched.ready()
        device.request(Load(decks=6))
        shoe: ShoeDriver = watched.driver
        await shoe.open_gate()
        device.request(Draw(count=200))
        for _ in range(2000):
            await shoe.open_gate()
            await asyncio.sleep(0.01)
        assert watched.states == COMES_UP
        assert sum(one.rekeyed for one in watched.of(events.SessionBegan)) >= 5
        assert len(watched.store.seqs) > 150
        assert exactly_once(watched)


@when_ready
async def test_the_clock_is_reported_when_it_moves(device: Plugged, watched: Watched) -> None:
    await asyncio.sleep(60)
    assert len(watched.of(events.ClockRead)) == 1
    device.request(Break(name="clock-fast"))
    await asyncio.sleep(60)
    assert 5 <= len(watched.of(events.ClockRead)) <= 8


# --- the end --------------------------------------------------------------------------------------


@simulated
async def test_it_can_be_stopped_at_any_moment(tmp_path: Path) -> None:
    """From the first moment on: looking, opening, shaking hands, resuming, playing."""
    async with table(tmp_path) as (desk, device, watched):
        async with running(watched):
            await watched.ready()
        device.request(Load(decks=8))
        seen = set()
        for turns in range(60):
            again = Watched(desk, device.wanted, watched.store)
            task = asyncio.create_task(again.supervisor.run())
            for _ in range(turns):
                await asyncio.sleep(0)
            seen.add(again.state)
            await stopped(task)
            assert (again.state, device.listener, again.supervisor.link) == (S.ABSENT, None, None)
        assert seen == {S.ABSENT, S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY}


@when_ready
async def test_a_port_that_was_left_delivers_nothing(device: Plugged, watched: Watched) -> None:
    """A port may be late with what it has to say, or not close at all."""
    old: Any = device.listener
    device.request(Freeze(on=True))
    await watched.until(S.LOST)
    device.request(Freeze(on=False))
    await watched.until(S.READY)
    stood = len(watched.happenings)
    old.received(b"\x01late\0" * 10)
    old.lost(PortLost("late"))
    await asyncio.sleep(1)
    assert watched.state is S.READY
    late = (events.Damage, events.PortGone, events.StateChanged)
    assert not [one for one in watched.happenings[stood:] if isinstance(one, late)]


@simulated
async def test_a_port_that_does_not_close_is_left_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with table(tmp_path) as (_, device, watched), running(watched):
        await watched.ready()
        with monkeypatch.context() as patch:
            patch.setattr(SimPort, "close", never)
            device.request(Plug(connected=False))
            await asyncio.sleep(CLOSE_TIMEOUT + 1)
        assert watched.of(events.PortDenied)[0].why == "did not close within 5 s"
        device.request(Plug(connected=True))
        await watched.until(S.READY)
