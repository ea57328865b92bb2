"""The host stands still while its devices run: the session heals at the same port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drivers import events
from drivers.devices import LinkState, ShoeDriver
from firmware_protocol.device import CutPower, Describe, Draw, Freeze, Load, Plug
from firmware_protocol.host import SessionEnding
from firmware_protocol.messages import HANDSHAKE_WAIT_MS
from tests.support.drivers.simulated import (
    Desk,
    Plugged,
    Watched,
    now_us,
    stand_still,
    until,
    when_ready,
)

S = LinkState
HEALS = [S.IDENTIFYING, S.HANDSHAKING, S.RESUMING, S.READY]


def drawn(device: Plugged, watched: Watched) -> bool:
    """All that the device has recorded is stored, once."""
    seqs: list[int] = watched.store.seqs
    return seqs == list(range(1, device.stand.firmware.ring.head + 1))


def lock(device: Plugged) -> object:
    return device.request(Describe())["mechanism"]["lock"]


@pytest.mark.parametrize("seconds", [0.3, 0.5, 0.7])
@when_ready
async def test_a_short_stall_changes_nothing(
    device: Plugged, watched: Watched, seconds: float
) -> None:
    before = list(watched.states)
    for _ in range(5):
        stand_still(seconds, device)
        await asyncio.sleep(2)
    assert (watched.states, watched.of(events.SessionEnded)) == (before, [])


@pytest.mark.parametrize("seconds", [1, 2, 3, 5, 60])
@when_ready
async def test_after_a_longer_one_the_same_port_is_used_and_nothing_is_missed(
    device: Plugged, watched: Watched, seconds: float
) -> None:
    device.request(Load(decks=1))
    shoe: ShoeDriver = watched.driver
    await shoe.open_gate()
    await asyncio.sleep(0.1)
    before, opened = len(watched.states), device.opened
    device.request(Draw())
    stand_still(seconds, device)
    assert watched.state is S.READY
    at = now_us()
    await until(lambda: watched.states[before:] == HEALS)
    assert now_us() - at < 100_000
    assert watched.whys(events.SessionEnded) == [SessionEnding.STALLED]
    assert (device.opened, watched.of(events.PortGone)) == (opened, [])
    assert not watched.of(events.AttemptFailed)
    await until(lambda: drawn(device, watched))
    await asyncio.sleep(5)
    assert watched.states[before:] == HEALS
    assert lock(device) == "locked", "it was locked by its own timeout, and stays so"


@when_ready
async def test_a_device_that_hangs_meanwhile_is_noticed(device: Plugged, watched: Watched) -> None:
    device.request(Freeze(on=True))
    stand_still(3, device)
    await asyncio.sleep(1)
    assert watched.state is not S.READY
    device.request(Freeze(on=False))
    await watched.until(S.READY)


@when_ready
async def test_a_device_that_was_restarted_meanwhile_is_told(
    device: Plugged, watched: Watched
) -> None:
    await asyncio.sleep(2)
    device.request(CutPower(off_ms=500))
    stand_still(3, device)
    await asyncio.sleep(0.1)
    assert watched.state is S.READY
    assert [(one.old, one.new) for one in watched.of(events.Restarted)] == [(1, 2)]


@when_ready
async def test_a_device_that_was_replaced_meanwhile_is_refused(
    desk: Desk, device: Plugged, watched: Watched, tmp_path: Path
) -> None:
    other = Plugged(tmp_path / "other", serial=device.identity.serial)
    other.listener, device.listener = device.listener, None  # the cable is in another device
    device.request(Plug(connected=False))
    desk.plug(other)
    stand_still(3, other)
    port = watched.supervisor.port
    assert port is not None
    port._plugged = other  # type: ignore[attr-defined]
    await asyncio.sleep(0.1)
    assert watched.state is S.REFUSED
    assert len(watched.of(events.Swapped)) == 1


@when_ready
async def test_the_timeout_of_an_answer_is_that_of_a_host_that_runs(
    device: Plugged, watched: Watched
) -> None:
    device.request(Freeze(on=True))
    await watched.until(S.IDENTIFYING)
    before = len(watched.states)
    await asyncio.sleep(8)
    stand_still(5, device)
    await asyncio.sleep(1)
    assert watched.states[before:] == []
    await asyncio.sleep(2)
    assert watched.states[before] is S.LOST


@when_ready
async def test_a_session_after_a_stall_has_the_time_of_a_handshake(
    device: Plugged, watched: Watched
) -> None:
    """HS2 and the first DATA take almost as long as they may."""
    device.slow = (HANDSHAKE_WAIT_MS / 1000 - 0.1, 0.9)
    before, opened = len(watched.states), device.opened
    stand_still(3, device)
    await asyncio.sleep(sum(device.slow) - 0.1)
    assert watched.states[before:] == HEALS[:2]
    await watched.until(S.READY, within=0.5)
    assert watched.states[before:] == HEALS
    assert (device.opened, watched.of(events.AttemptFailed)) == (opened, [])
