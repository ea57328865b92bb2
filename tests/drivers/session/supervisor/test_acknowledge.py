"""Kept first, acknowledged then, handed out last: each record exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from drivers import events
from drivers.devices import LinkState, NotReady
from drivers.session.acknowledge import STORE_TIMEOUT
from firmware_protocol.device import CutPower, Draw, Freeze, Plug
from firmware_protocol.messages import LockState
from tests.support.drivers.dealing import FULL_DISK, acknowledged, dealing, head, same
from tests.support.drivers.simulated import Plugged, Watched, supervised

S = LinkState


# --- the order of things --------------------------------------------------------------------------


@supervised
async def test_nothing_is_acknowledged_or_handed_out_before_it_is_kept(
    device: Plugged, watched: Watched
) -> None:
    await dealing(device, watched)
    await asyncio.sleep(1)
    watched.events()
    stood = head(device)
    watched.store.slow = 2.0
    device.request(Draw(count=1))
    await asyncio.sleep(1.5)
    assert head(device) == stood + 1
    assert acknowledged(device) == stood
    assert watched.events() == []
    await asyncio.sleep(1)
    assert acknowledged(device) == stood + 1
    assert len(watched.events()) == 1


# --- a keeper that fails --------------------------------------------------------------------------


@supervised
async def test_when_nothing_can_be_kept_nothing_is_acknowledged(
    device: Plugged, watched: Watched
) -> None:
    shoe = await dealing(device, watched)
    await asyncio.sleep(1)
    stood = head(device)
    watched.store.failing = FULL_DISK
    device.request(Draw(count=5))
    await asyncio.sleep(5)
    assert watched.state is S.UNKEPT
    assert watched.supervisor.why == str(FULL_DISK)
    (failed,) = watched.of(events.KeepFailed)
    assert failed.why == str(FULL_DISK)
    assert head(device) == stood + 5
    assert acknowledged(device) == stood
    # What is safe can still be done, and nothing else.
    assert await shoe.lock() is LockState.LOCKED
    assert (await shoe.info()).boot == 1
    with pytest.raises(NotReady, match="no space left"):
        await shoe.open_gate()
    # That the disk has room again is not enough: someone has to say so.
    watched.store.failing = None
    await asyncio.sleep(5)
    assert acknowledged(device) == stood
    assert watched.store.cursor().seq == stood
    watched.supervisor.recovered()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    assert acknowledged(device) == stood + 5
    same(watched, device, watched.events())
    assert len(watched.of(events.KeepMended)) == 1
    with pytest.raises(ValueError, match="nothing has failed"):
        watched.supervisor.recovered()


@supervised
async def test_a_record_that_was_kept_in_spite_of_the_error_does_not_come_again(
    device: Plugged,
    watched: Watched,
) -> None:
    """The keeper alone knows what it has kept: after it is mended it is asked."""
    await dealing(device, watched)
    await asyncio.sleep(1)
    keep = watched.store.store

    async def half(*what: Any) -> None:
        await keep(*what)
        raise FULL_DISK

    watched.store.store = half
    device.request(Draw(count=4))
    await watched.until(S.UNKEPT)
    device.request(Plug(connected=False))
    watched.store.store = keep
    watched.supervisor.recovered()
    device.request(Plug(connected=True))
    await watched.until(S.READY)
    await asyncio.sleep(1)
    assert watched.store.seqs == list(range(1, head(device) + 1))


@supervised
async def test_while_it_fails_the_device_may_come_and_go(device: Plugged, watched: Watched) -> None:
    await dealing(device, watched)
    await asyncio.sleep(1)
    stood = head(device)
    watched.store.failing = FULL_DISK
    device.request(Draw(count=3))
    await watched.until(S.UNKEPT)
    for hand in (Plug(connected=False), Plug(connected=True), CutPower(), Freeze(on=True)):
        device.request(hand)
        await asyncio.sleep(3)
    device.request(Freeze(on=False))
    await asyncio.sleep(10)
    assert watched.state is S.UNKEPT
    assert acknowledged(device) == stood
    assert len(watched.of(events.KeepFailed)) == 1
    watched.store.failing = None
    watched.supervisor.recovered()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    same(watched, device, watched.events())


class Odd(Exception):
    """Nothing that a keeper should raise."""


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (ValueError("record 5 is not the one after 3"), "ValueError: record 5 is not the one"),
        (KeyError("cards"), "KeyError: 'cards'"),
        (Odd(), "Odd"),
        (OSError(errno.EIO, "the disk says no"), "[Errno 5] the disk says no"),
        (asyncio.CancelledError(), "the store has given up"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
@supervised
async def test_whatever_a_keeper_fails_of_nothing_is_kept_any_more(
    device: Plugged, watched: Watched, problem: BaseException, why: str
) -> None:
    shoe = await dealing(device, watched)
    await asyncio.sleep(1)
    stood, keep = head(device), watched.store.store

    async def broken(*_: object) -> None:
        raise problem

    watched.store.store = broken
    device.request(Draw(count=3))
    await watched.until(S.UNKEPT)
    await asyncio.sleep(1)
    assert acknowledged(device) == stood
    assert watched.supervisor.why.startswith(why)
    (failed,) = watched.of(events.KeepFailed)
    assert failed.why.startswith(why)
    assert await shoe.lock() is LockState.LOCKED
    watched.store.store = keep
    watched.supervisor.recovered()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    same(watched, device, watched.events())


@supervised
async def test_a_keeper_that_takes_too_long_has_failed(device: Plugged, watched: Watched) -> None:
    await dealing(device, watched)
    await asyncio.sleep(1)
    watched.store.slow = STORE_TIMEOUT - 1
    device.request(Draw(count=1))
    await asyncio.sleep(STORE_TIMEOUT + 1)
    assert watched.state is S.READY
    watched.store.slow = 3600
    device.request(Draw(count=1))
    await watched.until(S.UNKEPT, within=STORE_TIMEOUT + 1)
    assert watched.of(events.KeepFailed)[0].why == "not stored within 10 s"
    watched.store.slow = 0
    watched.supervisor.recovered()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    same(watched, device, watched.events())


@supervised
async def test_what_came_before_the_port_was_lost_is_kept_before_it_is_resumed(
    device: Plugged,
    watched: Watched,
) -> None:
    await dealing(device, watched)
    await asyncio.sleep(1)
    watched.store.slow = 3.0
    device.request(Draw(count=3))
    await asyncio.sleep(0.5)
    device.request(Plug(connected=False))
    device.request(Plug(connected=True))
    await asyncio.sleep(2)
    assert watched.state is S.OPENING
    await watched.until(S.READY)
    await asyncio.sleep(10)
    same(watched, device, watched.events())
