"""A ring that does not continue the record waits for two people, and what they said is kept."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from drivers import events
from drivers.devices import LinkState
from drivers.keys import TwoPeopleNeeded
from drivers.session import NothingHeld
from firmware_protocol.device import Draw, MoveCover, Plug, RingMemory
from firmware_protocol.messages import Verdict
from tests.support.asynchronous import simulated
from tests.support.drivers.holding import BY, draws, held, plays
from tests.support.drivers.simulated import (
    MemoryStore,
    Plugged,
    Watched,
    running,
    supervised,
    table,
)

S = LinkState


# --- what it takes --------------------------------------------------------------------------------


@supervised
async def test_nothing_comes_of_a_new_ring_before_two_people_have_said_so(
    device: Plugged, watched: Watched
) -> None:
    what = await held(watched)
    assert (what.verdict, what.oldest, what.head) == (Verdict.NEW_EPOCH, 1, 1)
    assert watched.supervisor.why == "NEW_EPOCH: two people decide"
    await asyncio.sleep(60)
    assert watched.store.records == []
    for by in (
        ("Ann", "Ann"),
        ("Ann", " ann "),
        ("Ann Lee", "Ann  Lee"),
        ("A Lee", "\uff21 Lee"),
        ("", "Bob"),
        ("Ann", " "),
        ("", ""),
        ("Ann", "x" * 65),
        ("Ж" * 60, "Bob"),
        ("Ann", "B\0b"),
    ):
        with pytest.raises(TwoPeopleNeeded):
            await watched.supervisor.adopt(by)
    assert watched.store.adoptions == []
    with pytest.raises(TwoPeopleNeeded, match="one person"):
        await watched.supervisor.adopt(("Ann", "ANN"))
    await watched.supervisor.adopt((" Ann ", "Bob"))
    await watched.until(S.READY)
    (adoption,) = watched.store.adoptions
    assert (adoption.held.verdict, adoption.by) == (Verdict.NEW_EPOCH, BY)
    assert adoption.held.epoch == what.epoch
    (adopted,) = watched.of(events.Adopted)
    assert (adopted.by, adopted.epoch, adopted.verdict) == (
        BY,
        what.epoch,
        Verdict.NEW_EPOCH,
    )
    await asyncio.sleep(1)
    assert watched.store.seqs == [1]
    assert device.stand.firmware.records.room.acked == 1
    with pytest.raises(NothingHeld, match="the device is ready"):
        await watched.supervisor.adopt(BY)


@supervised
async def test_what_was_said_is_kept_before_it_is_done(watched: Watched) -> None:
    await held(watched)
    watched.store.failing = OSError(errno.EIO, "the disk says no")
    with pytest.raises(OSError, match="the disk says no"):
        await watched.supervisor.adopt(BY)
    assert watched.state is S.UNKEPT
    assert watched.of(events.Adopted) == []
    await asyncio.sleep(5)
    assert watched.of(events.Resumed) == []
    watched.store.failing = None
    watched.supervisor.recovered()
    await watched.ready()


@supervised
async def test_a_device_that_goes_away_meanwhile_is_adopted_anew(
    device: Plugged, watched: Watched
) -> None:
    await held(watched)
    adopt = watched.store.adopt

    async def slowly(adoption: Any) -> None:
        device.request(Plug(connected=False))
        await adopt(adoption)

    watched.store.adopt = slowly
    with pytest.raises(NothingHeld, match="went away meanwhile"):
        await watched.supervisor.adopt(BY)
    with pytest.raises(NothingHeld, match="the device is lost"):
        await watched.supervisor.adopt(BY)
    watched.store.adopt = adopt
    device.request(Plug(connected=True))
    await watched.until(S.READY, S.RESUMING)
    await watched.ready()


# --- each verdict ---------------------------------------------------------------------------------


Prepare = Callable[[Plugged, Watched], Any]


@asynccontextmanager
async def resumed_after(
    tmp_path: Path, prepare: Prepare, rewind: int | None = None
) -> AsyncIterator[tuple[Plugged, Watched]]:
    """A table that has played, then `prepare` at the device, then a new host; with `rewind` its
    record ends at that seq."""
    async with table(tmp_path) as (desk, device, before):
        async with running(before):
            await plays(device, before)
            await prepare(device, before)
        keeper = before.store
        if rewind is not None:
            keeper = MemoryStore.at(before.store.records[:rewind])
        desk.devices[:] = [device]
        watched = Watched(desk, device.wanted, keeper)
        async with running(watched):
            yield device, watched


async def fork(device: Plugged, watched: Watched) -> None:
    device.request(RingMemory(what="save"))
    await draws(device, watched, 3)
    device.request(RingMemory(what="restore"))


async def new_epoch(device: Plugged, watched: Watched) -> None:
    device.request(RingMemory(what="replace"))


async def gap(device: Plugged, watched: Watched) -> None:
    for _ in range(4):
        await draws(device, watched, 40)


CASES = {
    Verdict.FORK: (fork, None),
    Verdict.NEW_EPOCH: (new_epoch, None),
    Verdict.GAP: (gap, 7),
}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("verdict", CASES)
@simulated
async def test_two_people_can_go_on_after_any_verdict(
    tmp_path: Path, verdict: Verdict, skip: bool
) -> None:
    prepare, rewind = CASES[verdict]
    async with resumed_after(tmp_path, prepare, rewind) as (device, watched):
        what = await held(watched)
        assert what.verdict is verdict
        assert watched.of(events.Held)[-1].verdict is verdict
        former, had = watched.store.cursor(), len(watched.store.records)
        await asyncio.sleep(5)
        assert watched.store.cursor() == former
        await watched.supervisor.adopt(BY, skip=skip)
        await watched.until(S.READY)
        await asyncio.sleep(2)
        device.request(MoveCover(open=True))
        await asyncio.sleep(1)
        adoption = watched.store.adoptions[-1]
        assert adoption.held.verdict is verdict
        assert adoption.next == (what.head + 1 if skip else what.oldest)
        fresh = watched.store.records[had:]
        head = device.stand.firmware.ring.head
        assert [one.seq for one in fresh] == list(range(adoption.next, head + 1))
        assert {one.epoch for one in fresh} == {what.epoch}


@supervised
async def test_a_fork_in_the_middle_of_the_game_is_held(device: Plugged, watched: Watched) -> None:
    await plays(device, watched)
    await fork(device, watched)
    device.request(Draw(count=1, force=True))
    what = await held(watched)
    assert what.verdict is Verdict.FORK
    await watched.supervisor.adopt(BY)
    await watched.until(S.READY)
