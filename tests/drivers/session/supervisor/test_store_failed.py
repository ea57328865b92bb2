"""A keeper that does not say how far the record goes: no session begins, and people know why."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drivers import events
from drivers.devices import LinkState, NotReady, ShoeDriver
from drivers.session import NothingHeld, StoreFailed
from drivers.session.acknowledge import STORE_TIMEOUT
from firmware_protocol.device import CutPower, Draw, Freeze, MoveCover, Plug, RingMemory
from firmware_protocol.host import RecordCursor
from firmware_protocol.messages import LockState
from tests.support.asynchronous import simulated
from tests.support.drivers.dealing import (
    FULL_DISK,
    acknowledged,
    head,
    mended,
    raises,
    same,
    when_dealing,
)
from tests.support.drivers.simulated import (
    MemoryStore,
    Plugged,
    Watched,
    running,
    stopped,
    stubborn_store,
    table,
)

S = LinkState
BROKEN_DISK = OSError(errno.EIO, "the disk says no")
BY = ("Ann", "Bob")


SAYS: list[tuple[str, Callable[[], Any], str]] = [
    ("cursor", raises(BROKEN_DISK), "[Errno 5] the disk says no"),
    ("recent", raises(KeyError("chains")), "KeyError: 'chains'"),
    ("cursor", raises(TimeoutError("too slow")), "too slow"),
    ("cursor", lambda: None, "AttributeError: "),
    ("recent", lambda: {"one": b""}, "TypeError: "),
    ("recent", lambda: None, "TypeError: "),
]


@pytest.mark.parametrize(
    ("what", "say", "why"), SAYS, ids=[f"{what}: {why}" for what, _, why in SAYS]
)
@simulated
async def test_without_it_no_session_begins(
    tmp_path: Path, what: str, say: Callable[[], Any], why: str
) -> None:
    async with table(tmp_path) as (_, device, watched):
        setattr(watched.store, what, say)
        async with running(watched):
            await watched.until(S.UNKEPT)
            (failed,) = watched.of(events.KeepFailed)
            assert failed.why.startswith(why)
            assert watched.supervisor.why.startswith(f"how far its record goes is not known: {why}")
            assert watched.supervisor.failure is not None
            # The device is left alone, and is safe by itself; nobody is told that it is not.
            await asyncio.sleep(30)
            assert (device.opened, device.listener) == (1, None)
            assert watched.of(events.SessionBegan) == watched.of(events.Held) == []
            assert len(watched.of(events.KeepFailed)) == 1
            with pytest.raises(NotReady, match="how far its record goes is not known"):
                await watched.driver.lock()
            with pytest.raises(StoreFailed):
                await watched.supervisor.adopt(BY)
            # What does not say so either mends nothing.
            with pytest.raises(StoreFailed):
                watched.supervisor.recovered()
            assert (watched.state, watched.of(events.KeepMended)) == (S.UNKEPT, [])
            delattr(watched.store, what)
            watched.supervisor.recovered()
            await watched.ready(within=2)
            await asyncio.sleep(1)
            same(watched, device, watched.events())


@simulated
async def test_it_is_asked_only_when_there_is_a_device(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        watched.store.cursor = raises(BROKEN_DISK)
        device.request(Plug(connected=False))
        async with running(watched):
            await asyncio.sleep(5)
            assert watched.state is S.ABSENT
            device.request(Plug(connected=True))
            await watched.until(S.UNKEPT)
            device.request(Plug(connected=False))
            await asyncio.sleep(5)
            del watched.store.cursor
            watched.supervisor.recovered()
            await watched.until(S.ABSENT)
            device.request(Plug(connected=True))
            await watched.ready()


@when_dealing
async def test_a_keeper_that_fell_silent_after_it_was_mended(
    device: Plugged, watched: Watched
) -> None:
    """The game goes on with a keeper that says where it stands once, and then no more."""
    watched.store.failing = BROKEN_DISK
    device.request(Draw(count=3))
    await watched.until(S.UNKEPT)
    stood = acknowledged(device)
    watched.store.failing = None
    watched.supervisor.recovered()
    watched.store.cursor = raises(OSError(errno.EIO, "gone again"))
    await asyncio.sleep(5)
    assert watched.state is S.UNKEPT
    assert watched.whys(events.KeepFailed) == [
        "[Errno 5] the disk says no",
        "[Errno 5] gone again",
    ]
    assert acknowledged(device) == stood
    del watched.store.cursor
    await mended(device, watched)


@when_dealing
async def test_the_first_cause_is_kept_when_the_cursor_is_lost_too(
    device: Plugged, watched: Watched, shoe: ShoeDriver
) -> None:
    device.request(RingMemory(what="replace"))
    device.request(MoveCover(open=True))
    await watched.until(S.RESUMING)
    adopt = watched.store.adopt

    async def slowly(adoption: Any) -> None:
        device.request(Plug(connected=False))
        await adopt(adoption)
        watched.store.cursor = raises(BROKEN_DISK)
        watched.store.failing = OSError("a consequence")

    watched.store.adopt = slowly
    with pytest.raises(NothingHeld, match="went away meanwhile"):
        await watched.supervisor.adopt(BY)
    device.request(Plug(connected=True))
    await watched.until(S.UNKEPT)
    assert watched.supervisor.failure is BROKEN_DISK
    with pytest.raises(NotReady, match="the disk says no"):
        await shoe.lock()


@when_dealing
async def test_a_keeper_that_fails_before_it_can_be_waited_for_has_failed(
    device: Plugged, watched: Watched, shoe: ShoeDriver
) -> None:
    """Its keep() and adopt() are no coroutines, and raise at once or give nothing to wait for."""
    keep, stood = watched.store.store, head(device)
    for number, broken in enumerate((lambda _: raises(BROKEN_DISK)(), lambda _: None), 1):
        watched.store.store = broken
        device.request(Draw(count=1, force=True))
        await watched.until(S.UNKEPT)
        assert (acknowledged(device), len(watched.of(events.KeepFailed))) == (stood, number)
        assert await shoe.lock() is LockState.LOCKED
        watched.store.store = keep
        watched.supervisor.recovered()
        await watched.until(S.READY)
        await asyncio.sleep(1)
        stood = head(device)
    same(watched, device, watched.events())


@when_dealing
async def test_a_late_failure_is_ignored_after_recovery(device: Plugged, watched: Watched) -> None:
    """The store ignores its cancellation, and fails when others have long been stored."""
    may_end = asyncio.Event()
    store = watched.store.store
    watched.store.store = stubborn_store(may_end, BROKEN_DISK)
    device.request(Draw(count=1))
    await asyncio.sleep(1)
    device.replug()
    await watched.until(S.UNKEPT)
    watched.store.store = store
    watched.supervisor.recovered()
    may_end.set()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    assert watched.supervisor.failure is None
    same(watched, device, watched.events())


@simulated
async def test_a_host_may_stop_while_it_waits_to_be_mended(tmp_path: Path) -> None:
    async with table(tmp_path) as (desk, device, watched):
        watched.store.cursor = raises(BROKEN_DISK)
        task = asyncio.create_task(watched.supervisor.run())
        await watched.until(S.UNKEPT)
        await stopped(task)
        assert watched.state is S.ABSENT
        again = Watched(desk, device.wanted, MemoryStore(RecordCursor(7, 0, bytes(8))))
        async with running(again):
            await again.ready()


# --- the order of things --------------------------------------------------------------------------


@when_dealing
async def test_nothing_is_acknowledged_or_delivered_before_it_is_stored(
    device: Plugged, watched: Watched
) -> None:
    watched.events()
    stood = head(device)
    watched.store.slow = 2.0
    device.request(Draw(count=1))
    await asyncio.sleep(1.5)
    assert (head(device), acknowledged(device), watched.events()) == (stood + 1, stood, [])
    await asyncio.sleep(1)
    assert (acknowledged(device), len(watched.events())) == (stood + 1, 1)


# --- a keeper that fails --------------------------------------------------------------------------


@when_dealing
async def test_when_nothing_can_be_stored_nothing_is_acknowledged(
    device: Plugged, watched: Watched, shoe: ShoeDriver
) -> None:
    stood = head(device)
    watched.store.failing = FULL_DISK
    device.request(Draw(count=5))
    await asyncio.sleep(5)
    assert (watched.state, watched.supervisor.why) == (S.UNKEPT, str(FULL_DISK))
    assert watched.whys(events.KeepFailed) == [str(FULL_DISK)]
    assert (head(device), acknowledged(device)) == (stood + 5, stood)
    # What is safe can still be done, and nothing else.
    assert await shoe.lock() is LockState.LOCKED
    assert (await shoe.info()).boot == 1
    with pytest.raises(NotReady, match="no space left"):
        await shoe.open_gate()
    # That the disk has room again is not enough: someone has to say so.
    watched.store.failing = None
    await asyncio.sleep(5)
    assert (acknowledged(device), watched.store.cursor().seq) == (stood, stood)
    watched.supervisor.recovered()
    await watched.until(S.READY)
    await asyncio.sleep(1)
    assert acknowledged(device) == stood + 5
    same(watched, device, watched.events())
    assert len(watched.of(events.KeepMended)) == 1
    with pytest.raises(ValueError, match="nothing has failed"):
        watched.supervisor.recovered()


@when_dealing
async def test_a_record_that_was_stored_in_spite_of_the_error_is_not_repeated(
    device: Plugged, watched: Watched
) -> None:
    """The keeper alone knows what it has kept: after it is mended it is asked."""
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


@when_dealing
async def test_while_it_fails_the_device_may_come_and_go(device: Plugged, watched: Watched) -> None:
    stood = head(device)
    watched.store.failing = FULL_DISK
    device.request(Draw(count=3))
    await watched.until(S.UNKEPT)
    for hand in (Plug(connected=False), Plug(connected=True), CutPower(), Freeze(on=True)):
        device.request(hand)
        await asyncio.sleep(3)
    device.request(Freeze(on=False))
    await asyncio.sleep(10)
    assert (watched.state, acknowledged(device)) == (S.UNKEPT, stood)
    assert len(watched.of(events.KeepFailed)) == 1
    watched.store.failing = None
    await mended(device, watched)


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
@when_dealing
async def test_after_any_error_of_a_store_nothing_is_stored_any_more(
    device: Plugged, watched: Watched, problem: BaseException, why: str, shoe: ShoeDriver
) -> None:
    stood, keep = head(device), watched.store.store

    async def broken(*_: object) -> None:
        raise problem

    watched.store.store = broken
    device.request(Draw(count=3))
    await watched.until(S.UNKEPT)
    await asyncio.sleep(1)
    assert (acknowledged(device), watched.supervisor.why.startswith(why)) == (stood, True)
    (failed,) = watched.of(events.KeepFailed)
    assert failed.why.startswith(why)
    assert await shoe.lock() is LockState.LOCKED
    watched.store.store = keep
    await mended(device, watched)


@when_dealing
async def test_a_keeper_that_takes_too_long_has_failed(device: Plugged, watched: Watched) -> None:
    watched.store.slow = STORE_TIMEOUT - 1
    device.request(Draw(count=1))
    await asyncio.sleep(STORE_TIMEOUT + 1)
    assert watched.state is S.READY
    watched.store.slow = 3600
    device.request(Draw(count=1))
    await watched.until(S.UNKEPT, within=STORE_TIMEOUT + 1)
    assert watched.of(events.KeepFailed)[0].why == "not stored within 10 s"
    watched.store.slow = 0
    await mended(device, watched)


@when_dealing
async def test_records_before_the_loss_of_the_port_are_stored_before_resume(
    device: Plugged, watched: Watched
) -> None:
    watched.store.slow = 3.0
    device.request(Draw(count=3))
    await asyncio.sleep(0.5)
    device.replug()
    await asyncio.sleep(2)
    assert watched.state is S.OPENING
    await watched.until(S.READY)
    await asyncio.sleep(10)
    same(watched, device, watched.events())
