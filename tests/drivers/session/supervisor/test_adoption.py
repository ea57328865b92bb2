"""A ring that does not continue the record waits for two people, and what they said is kept."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from drivers import events
from drivers.devices import LinkState
from drivers.keys import TwoPeopleNeeded
from drivers.session import NothingHeld, StoreFailed
from drivers.session.acknowledge import STORE_TIMEOUT
from drivers.session.opening import ANSWER_TIMEOUT
from firmware_protocol.device import NOTHING_ACKED, Draw, MoveCover, Plug, RingMemory
from firmware_protocol.messages import Verdict
from hil.faults import FaultyBehaviour
from tests.support.asynchronous import simulated
from tests.support.drivers.holding import BY, draws, held, mute_on_resume, plays
from tests.support.drivers.simulated import (
    MemoryStore,
    Plugged,
    Watched,
    never,
    now_us,
    running,
    stopped,
    supervised,
    table,
)

S = LinkState


# --- what it takes --------------------------------------------------------------------------------


@supervised
async def test_nothing_of_a_new_ring_is_delivered_before_two_people_adopt_it(
    device: Plugged, watched: Watched
) -> None:
    what = await held(watched)
    assert (what.verdict, what.oldest, what.head) == (Verdict.NEW_EPOCH, 1, 1)
    assert watched.supervisor.why == (
        "this record has nothing of the log of the shoe: two people decide"
    )
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
    both = BY, what.epoch, Verdict.NEW_EPOCH
    assert (adoption.by, adoption.held.epoch, adoption.held.verdict) == both
    assert [(one.by, one.epoch, one.verdict) for one in watched.of(events.Adopted)] == [both]
    await asyncio.sleep(1)
    assert (watched.store.seqs, device.stand.firmware.records.room.acked) == ([1], 1)
    with pytest.raises(NothingHeld, match="the device is ready"):
        await watched.supervisor.adopt(BY)


@supervised
async def test_an_adoption_is_stored_before_it_takes_effect(watched: Watched) -> None:
    await held(watched)
    watched.store.failing = OSError(errno.EIO, "the disk says no")
    with pytest.raises(OSError, match="the disk says no"):
        await watched.supervisor.adopt(BY)
    assert (watched.state, watched.of(events.Adopted)) == (S.UNKEPT, [])
    await asyncio.sleep(5)
    assert watched.of(events.Resumed) == []
    watched.store.failing = None
    watched.supervisor.recovered()
    await watched.ready()


@supervised
async def test_a_device_that_disconnects_during_an_adoption_is_adopted_again(
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


async def more(device: Plugged, watched: Watched) -> None:
    await draws(device, watched, 10)


async def lap(device: Plugged, watched: Watched) -> None:
    for _ in range(4):
        await draws(device, watched, 40)


async def gap(device: Plugged, watched: Watched) -> None:
    """What was acknowledged is lost: only then a record that is gone is a GAP."""
    await lap(device, watched)
    device.stand.firmware.ring.acked = NOTHING_ACKED


CASES = {
    "fork": (Verdict.FORK, fork, None),
    "new epoch": (Verdict.NEW_EPOCH, new_epoch, None),
    "gap": (Verdict.GAP, gap, 7),
    "behind": (Verdict.BEHIND, more, 7),
    "behind by more than the ring has": (Verdict.BEHIND, lap, 7),
}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("case", CASES)
@simulated
async def test_two_people_can_go_on_after_any_verdict(
    tmp_path: Path, case: str, skip: bool
) -> None:
    verdict, prepare, rewind = CASES[case]
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
        first = what.acked_seq + 1 if verdict is Verdict.BEHIND else what.oldest
        assert adoption.next == (what.head + 1 if skip else first)
        assert [(one.epoch, one.seq) for one in watched.store.records[had:]] == [
            (what.epoch, seq) for seq in range(adoption.next, device.stand.firmware.ring.head + 1)
        ]


@supervised
async def test_a_fork_in_the_middle_of_the_game_is_held(device: Plugged, watched: Watched) -> None:
    await plays(device, watched)
    await fork(device, watched)
    device.request(Draw(count=1, force=True))
    assert (await held(watched)).verdict is Verdict.FORK
    await watched.supervisor.adopt(BY)
    await watched.until(S.READY)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("comes_back", ["the old ring", "the adopted ring", "a third ring"])
@supervised
async def test_an_adoption_that_came_too_late_leads_to_no_contradiction(
    device: Plugged, watched: Watched, comes_back: str, skip: bool
) -> None:
    """While it was kept the device went away: the next session begins where the keeper stands."""
    await plays(device, watched)
    device.request(RingMemory(what="save"))
    kept = watched.store.cursor()
    device.request(RingMemory(what="replace"))
    device.replug()
    await held(watched)
    adopt = watched.store.adopt

    async def slowly(adoption: Any) -> None:
        await adopt(adoption)
        device.request(Plug(connected=False))
        if comes_back == "the old ring":
            device.request(RingMemory(what="restore"))
        elif comes_back == "a third ring":
            device.request(RingMemory(what="replace"))
        device.request(Plug(connected=True))
        await asyncio.sleep(0.5)

    watched.store.adopt = slowly
    # Where it is back by then, and says the same as before, it is adopted all the same.
    with suppress(NothingHeld):
        await watched.supervisor.adopt(BY, skip=skip)
    watched.store.adopt = adopt
    for _ in range(2):
        await watched.ready()
        device.request(MoveCover(open=True))
        device.request(MoveCover(open=False))
        await asyncio.sleep(2)
    assert (watched.state, watched.supervisor.failure) == (S.READY, None)
    assert watched.store.cursor().seq == device.stand.firmware.ring.head
    assert watched.store.cursor() != kept


@supervised
async def test_a_ring_without_a_known_beginning_gives_way_to_the_old_one(
    device: Plugged, watched: Watched
) -> None:
    """Two people adopt what is left of another ring, which has gone before it was done."""
    await plays(device, watched)
    device.request(RingMemory(what="save"))
    device.request(RingMemory(what="replace"))
    device.replug()
    what = await held(watched)
    adopt = watched.store.adopt

    async def slowly(adoption: Any) -> None:
        # As of a ring whose first records are overwritten.
        await adopt(replace(adoption, held=replace(adoption.held, oldest=7, head=9)))
        device.request(Plug(connected=False))
        device.request(RingMemory(what="restore"))

    watched.store.adopt = slowly
    with pytest.raises(NothingHeld, match="went away meanwhile"):
        await watched.supervisor.adopt(BY)
    assert what.epoch != watched.store.cursor().epoch
    device.request(Plug(connected=True))
    await watched.until(S.READY)
    device.request(MoveCover(open=True))
    await asyncio.sleep(1)
    assert watched.store.cursor().seq == device.stand.firmware.ring.head
    assert watched.supervisor.failure is None


@supervised
async def test_a_caller_that_is_cancelled_does_not_cancel_the_adoption(watched: Watched) -> None:
    """A keeper that was called off would keep nothing more."""
    await held(watched)
    adopt, ended = watched.store.adopt, []

    async def slowly(adoption: Any) -> None:
        await asyncio.sleep(3)
        await adopt(adoption)
        ended.append(now_us())

    watched.store.adopt = slowly
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(watched.supervisor.adopt(BY), 1)
    assert watched.of(events.Adopted) == []
    # Two others have nothing left to decide.
    with pytest.raises(NothingHeld, match="have just adopted it"):
        await watched.supervisor.adopt(("Cid", "Dan"))
    await watched.until(S.READY)
    assert len(ended) == len(watched.store.adoptions) == len(watched.of(events.Adopted)) == 1
    await asyncio.sleep(1)
    assert (watched.store.seqs, watched.states.count(S.LOST)) == ([1], 0)


@pytest.mark.parametrize("gives_up", [False, True])
@simulated
async def test_a_host_that_stops_calls_an_adoption_off(tmp_path: Path, gives_up: bool) -> None:
    """Whoever waits for it hears of it, and does not believe to be called off too."""
    async with table(tmp_path) as (_, device, watched):
        async with running(watched):
            await held(watched)

            watched.store.adopt = never
            adopting = asyncio.create_task(watched.supervisor.adopt(BY))
            await asyncio.sleep(1)
            if gives_up:
                await stopped(adopting)
        if gives_up:
            assert adopting.cancelled()
        else:
            with pytest.raises(StoreFailed, match="the host has stopped"):
                await adopting
        assert device.listener is None
        with pytest.raises(NothingHeld):
            await watched.supervisor.adopt(BY)


@supervised
async def test_what_was_held_when_they_decided_is_what_is_adopted(
    device: Plugged, watched: Watched
) -> None:
    """Until the keeper rests the device goes, and comes back with a ring that nobody has seen."""
    await plays(device, watched)
    watched.store.slow = 5.0
    device.request(MoveCover(open=True))
    await asyncio.sleep(0.5)
    # Its last record is still being kept when another ring is there.
    device.request(RingMemory(what="replace"))
    device.request(MoveCover(open=False))
    await held(watched)
    adopting = asyncio.create_task(watched.supervisor.adopt(BY))
    await asyncio.sleep(0)
    device.request(RingMemory(what="replace"))
    device.replug()
    with pytest.raises(NothingHeld, match="went away meanwhile"):
        await adopting
    assert len(watched.store.adoptions) == 1
    watched.store.slow = 0.0
    await watched.ready()


@supervised
async def test_a_device_that_does_not_answer_an_adoption_is_opened_anew(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people have decided; what is missing is the device's answer, and that has its time."""
    await held(watched)
    with monkeypatch.context() as patch:
        patch.setattr(FaultyBehaviour, "reply_after", mute_on_resume)
        await watched.supervisor.adopt(BY)
        assert watched.supervisor.why.startswith("adopted by two people")
        with pytest.raises(NothingHeld, match="adopted by two people"):
            await watched.supervisor.adopt(BY)
        await watched.until(S.LOST, within=ANSWER_TIMEOUT + 0.1)
        assert watched.supervisor.why == "RESUME was not answered within 10 s"
    # What they have decided stands.
    await watched.until(S.READY)
    assert len(watched.store.adoptions) == 1


@supervised
async def test_an_adoption_that_is_not_stored_in_time_has_failed(watched: Watched) -> None:
    await held(watched)
    adopt = watched.store.adopt

    watched.store.adopt = never
    began = now_us()
    with pytest.raises(StoreFailed, match="not stored within 10 s"):
        await watched.supervisor.adopt(BY)
    assert (now_us() - began, watched.state) == (STORE_TIMEOUT * 1_000_000, S.UNKEPT)
    # Nothing is asked of a keeper that has failed.
    watched.store.adopt = adopt
    with pytest.raises(StoreFailed, match="not stored within 10 s"):
        await watched.supervisor.adopt(BY)
    assert watched.store.adoptions == []
    watched.supervisor.recovered()
    await watched.ready()
