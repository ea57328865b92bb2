"""Kept first, acknowledged then, handed out last: each record exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import errno
import random
from pathlib import Path

import pytest

from drivers import happenings as told
from drivers.calls import CommandUnanswered, NotReady
from drivers.device_events import DeviceEvent
from drivers.keeping import KEEP_WAIT
from drivers.shoe import Shoe, ShoeCardRead
from drivers.states import State
from firmware_protocol.enums import LockState
from firmware_protocol.limits import WINDOW
from hil.device.hands import Break, Draw, Freeze, Line, Load, Moment, Plug, Power
from tests.drivers.simulated import (
    MemoryKeeper,
    Plugged,
    Watched,
    now_us,
    running,
    simulate,
    table,
    until,
)

S = State
FULL_DISK = OSError(errno.ENOSPC, "no space left on the disk")


def acknowledged(device: Plugged) -> int:
    return device.stand.device.records.room.acked


def head(device: Plugged) -> int:
    return device.stand.device.ring.head


def same(watched: Watched, device: Plugged, events: list[DeviceEvent]) -> None:
    """What was kept is what the ring says; what was handed out is what was kept, in order."""
    records = watched.keeper.records
    assert watched.keeper.seqs == list(range(1, head(device) + 1))
    assert [one.origin.seq for one in events] == watched.keeper.seqs
    ring = device.stand.device.ring
    for record in records[-64:]:
        assert ring.record(record.seq) == record.encode()


async def dealing(device: Plugged, watched: Watched, decks: int = 6) -> Shoe:
    shoe = Shoe(watched.supervisor)
    await watched.ready()
    device.hand(Load(decks=decks))
    await shoe.open_gate()
    return shoe


# --- the order of things --------------------------------------------------------------------------


def test_nothing_is_acknowledged_or_handed_out_before_it_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            watched.events()
            stood = head(device)
            watched.keeper.slow = 2.0
            device.hand(Draw(count=1))
            await asyncio.sleep(1.5)
            assert head(device) == stood + 1
            assert acknowledged(device) == stood
            assert watched.queue.empty()
            await asyncio.sleep(1)
            assert acknowledged(device) == stood + 1
            assert watched.queue.qsize() == 1

    simulate(main())


def test_what_comes_while_it_is_kept_is_kept_together(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            batches: list[int] = []
            keep = watched.keeper.keep

            async def noted(records: list[object]) -> None:
                batches.append(len(records))
                await keep(records)

            watched.keeper.keep = noted
            watched.keeper.slow = 1.0
            device.hand(Draw(count=30))
            await asyncio.sleep(12)
            assert max(batches) <= WINDOW
            assert len(batches) < 12
            same(watched, device, watched.events())

    simulate(main())


# --- a keeper that fails --------------------------------------------------------------------------


def test_when_nothing_can_be_kept_nothing_is_acknowledged(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            shoe = await dealing(device, watched)
            await asyncio.sleep(1)
            stood = head(device)
            watched.keeper.failing = FULL_DISK
            device.hand(Draw(count=5))
            await asyncio.sleep(5)
            assert watched.state is S.UNKEPT
            assert watched.supervisor.why == str(FULL_DISK)
            (failed,) = watched.of(told.KeepFailed)
            assert failed.why == str(FULL_DISK)
            assert head(device) == stood + 5
            assert acknowledged(device) == stood
            # What is safe can still be done, and nothing else.
            assert await shoe.lock() is LockState.LOCKED
            assert (await shoe.info()).boot == 1
            with pytest.raises(NotReady, match="no space left"):
                await shoe.open_gate()
            # That the disk has room again is not enough: someone has to say so.
            watched.keeper.failing = None
            await asyncio.sleep(5)
            assert acknowledged(device) == stood
            assert watched.keeper.cursor().seq == stood
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(1)
            assert acknowledged(device) == stood + 5
            same(watched, device, watched.events())
            assert len(watched.of(told.KeepMended)) == 1
            with pytest.raises(ValueError, match="nothing has failed"):
                watched.supervisor.mended(watched.keeper)

    simulate(main())


def test_a_record_that_was_kept_in_spite_of_the_error_does_not_come_again(tmp_path: Path) -> None:
    """The keeper alone knows what it has kept: after it is mended it is asked."""

    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            keep = watched.keeper.keep

            async def half(records: list[object]) -> None:
                await keep(records[:1])
                raise FULL_DISK

            watched.keeper.keep = half
            device.hand(Draw(count=4))
            await watched.until(S.UNKEPT)
            device.hand(Plug(connected=False))
            watched.keeper.keep = keep
            watched.supervisor.mended(watched.keeper)
            device.hand(Plug(connected=True))
            await watched.until(S.READY)
            await asyncio.sleep(1)
            assert watched.keeper.seqs == list(range(1, head(device) + 1))

    simulate(main())


def test_while_it_fails_the_device_may_come_and_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            stood = head(device)
            watched.keeper.failing = FULL_DISK
            device.hand(Draw(count=3))
            await watched.until(S.UNKEPT)
            for hand in (Plug(connected=False), Plug(connected=True), Power(), Freeze(on=True)):
                device.hand(hand)
                await asyncio.sleep(3)
            device.hand(Freeze(on=False))
            await asyncio.sleep(10)
            assert watched.state is S.UNKEPT
            assert acknowledged(device) == stood
            assert len(watched.of(told.KeepFailed)) == 1
            watched.keeper.failing = None
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(1)
            same(watched, device, watched.events())

    simulate(main())


def test_a_keeper_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            watched.keeper.slow = KEEP_WAIT - 1
            device.hand(Draw(count=1))
            await asyncio.sleep(KEEP_WAIT + 1)
            assert watched.state is S.READY
            watched.keeper.slow = 3600
            device.hand(Draw(count=1))
            await watched.until(S.UNKEPT, within=KEEP_WAIT + 1)
            assert watched.of(told.KeepFailed)[0].why == "TimeoutError"
            watched.keeper.slow = 0
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(1)
            same(watched, device, watched.events())

    simulate(main())


def test_what_came_before_the_port_was_lost_is_kept_before_it_is_resumed(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            watched.keeper.slow = 3.0
            device.hand(Draw(count=3))
            await asyncio.sleep(0.5)
            device.hand(Plug(connected=False))
            device.hand(Plug(connected=True))
            await asyncio.sleep(2)
            assert watched.state is S.OPENING
            await watched.until(S.READY)
            await asyncio.sleep(10)
            same(watched, device, watched.events())

    simulate(main())


# --- a table that does not listen -----------------------------------------------------------------


def test_a_slow_table_makes_the_device_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path, room=4) as (_, device, watched), running(watched):
            taken: list[DeviceEvent] = []
            shoe = Shoe(watched.supervisor)
            await watched.ready()
            device.hand(Load(decks=6))
            await shoe.open_gate()
            device.hand(Draw(count=60))
            await asyncio.sleep(10)
            assert head(device) >= 60
            assert len(watched.keeper.records) <= 4 + 1 + WINDOW
            assert watched.state is S.READY
            assert len(watched.of(told.Paused)) == 1
            waiting = len(watched.keeper.records)
            await asyncio.sleep(30)
            assert len(watched.keeper.records) == waiting
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 5))
                await asyncio.sleep(0.05)
            same(watched, device, taken)
            await asyncio.sleep(1)
            assert len(watched.of(told.Paused)) == len(watched.of(told.WentOn))
            assert watched.of(told.WentOn)[0].paused_us > 30_000_000

    simulate(main())


def test_a_paused_device_stays_so_when_it_is_pulled(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path, room=2) as (_, device, watched), running(watched):
            await dealing(device, watched)
            device.hand(Draw(count=30))
            await asyncio.sleep(5)
            kept = len(watched.keeper.records)
            device.hand(Plug(connected=False))
            await asyncio.sleep(1)
            device.hand(Plug(connected=True))
            await watched.until(S.READY)
            await asyncio.sleep(5)
            assert len(watched.keeper.records) <= kept + WINDOW
            taken: list[DeviceEvent] = []
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 5))
            same(watched, device, taken)

    simulate(main())


# --- power, noise, and all of it ------------------------------------------------------------------


MOMENTS: tuple[Moment, ...] = (
    "before_commit",
    "in_commit",
    "after_commit",
    "before_reply",
    "before_ack",
)


@pytest.mark.parametrize("off_ms", [0, 700, 5000])
@pytest.mark.parametrize("moment", MOMENTS)
def test_power_may_go_at_any_moment(tmp_path: Path, moment: Moment, off_ms: int) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            shoe = await dealing(device, watched)
            for round_ in range(4):
                await asyncio.sleep(1)
                device.hand(Power(at=moment, off_ms=off_ms))
                device.hand(Draw(count=2 + round_, force=True))
                await asyncio.sleep(1.5 + off_ms / 1000)
                await _opened(watched, shoe)
            await asyncio.sleep(2)
            assert device.stand.device.boot >= 4
            same(watched, device, watched.events())

    simulate(main())


async def _opened(watched: Watched, shoe: Shoe) -> None:
    """The gate is open. The command itself may be what the power goes at."""
    await watched.until(S.READY)
    try:
        assert await shoe.open_gate() is LockState.OPEN
    except CommandUnanswered:
        await asyncio.sleep(0.2)
        await _opened(watched, shoe)


@pytest.mark.parametrize("seed", range(4))
def test_a_bad_line_delays_and_loses_nothing(tmp_path: Path, seed: int) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            shoe = await dealing(device, watched)
            noise = Line(flip=0.06, drop=0.05, double=0.05, splice=0.05, cut=0.04, seed=seed)
            device.hand(noise)
            began = now_us()
            for _ in range(6):
                device.hand(Draw(count=10, force=True))
                await asyncio.sleep(5)
            device.hand(Line())
            await watched.until(S.READY)
            await shoe.lock()
            await asyncio.sleep(3)
            same(watched, device, watched.events())
            seconds = (now_us() - began) / 1_000_000
            damage = watched.of(told.Damage)
            assert damage
            assert len(damage) <= seconds + 1
            for kind in (told.Suspicion, told.Alert, told.DeviceCounts, told.Defect):
                assert len(watched.of(kind)) <= seconds + 1
            assert watched.of(told.DeviceCounts)[-1].damaged > 0
            assert not watched.of(told.Defect)

    simulate(main())


@pytest.mark.parametrize("seed", range(8))
def test_all_of_it_at_once(tmp_path: Path, seed: int) -> None:
    """Ten minutes at a table where everything goes wrong."""

    async def main() -> None:
        dice = random.Random(seed)
        async with table(tmp_path, room=20) as (_, device, watched), running(watched):
            taken: list[DeviceEvent] = []
            taking = asyncio.create_task(_take(watched, taken, dice))
            shoe = await dealing(device, watched, decks=12)
            until_us = now_us() + 600_000_000
            while now_us() < until_us:
                await asyncio.sleep(dice.choice((0.01, 0.3, 1, 3, 12)))
                await _mishap(dice, device, watched, shoe)
            device.hand(Line())
            device.hand(Freeze(on=False))
            device.hand(Plug(connected=True))
            watched.keeper.failing, watched.keeper.slow = None, 0.0
            if watched.supervisor.failure is not None:
                watched.supervisor.mended(watched.keeper)
            await asyncio.sleep(15)
            await watched.until(S.READY)
            await asyncio.sleep(20)
            taking.cancel()
            taken += watched.events()
            kept = watched.keeper.seqs
            assert kept == list(range(1, head(device) + 1))
            assert [one.origin.seq for one in taken] == kept
            assert sum(isinstance(one, ShoeCardRead) for one in taken) > 30

    simulate(main())


async def _take(watched: Watched, taken: list[DeviceEvent], dice: random.Random) -> None:
    while True:
        taken.append(await watched.queue.get())
        await asyncio.sleep(dice.choice((0, 0, 0, 0.01, 2)))


async def _mishap(dice: random.Random, device: Plugged, watched: Watched, shoe: Shoe) -> None:
    stand, chance = device.stand, dice.random()
    alive = stand.powered and not stand.frozen
    if chance < 0.4 and alive:
        if len(device.stand.device.mechanism._inside.cards) > 5:  # type: ignore[attr-defined]
            device.hand(Draw(count=dice.randint(1, 4), force=True))
    elif chance < 0.5:
        device.hand(Plug(connected=not stand.plugged))
    elif chance < 0.6 and alive:
        device.hand(Power(at=dice.choice((*MOMENTS, "now")), off_ms=dice.choice((0, 300, 3000))))
    elif chance < 0.7 and stand.powered:
        device.hand(Freeze(on=not stand.frozen))
    elif chance < 0.8:
        share = dice.choice((0.0, 0.0, 0.02, 0.1))
        device.hand(
            Line(flip=share, drop=share, double=share, splice=share, seed=dice.getrandbits(9))
        )
    elif chance < 0.9:
        watched.keeper.slow = dice.choice((0.0, 0.0, 0.2, 4.0))
        watched.keeper.failing = FULL_DISK if dice.random() < 0.2 else None
    elif watched.supervisor.failure is not None and watched.keeper.failing is None:
        watched.supervisor.mended(watched.keeper)


def test_what_the_keeper_was_told_stands_when_the_host_is_killed(tmp_path: Path) -> None:
    """A host that dies at any turn of its loop: the next one goes on with what is kept."""

    async def main() -> None:
        async with table(tmp_path) as (desk, device, watched):
            keeper: MemoryKeeper = watched.keeper
            async with running(watched):
                await dealing(device, watched)
            dice = random.Random(1)
            for _ in range(25):
                again = Watched(desk, device.wanted, keeper)
                async with running(again):
                    await until(lambda again=again: again.state in (S.READY, S.RESUMING))
                    device.hand(Draw(count=3, force=True))
                    for _ in range(dice.randint(0, 400)):
                        await asyncio.sleep(0.001)
            last = Watched(desk, device.wanted, keeper)
            async with running(last):
                await last.until(S.READY)
                await asyncio.sleep(1)
            assert keeper.seqs == list(range(1, head(device) + 1))

    simulate(main())


def test_a_device_that_never_sends_again_is_found_out(tmp_path: Path) -> None:
    """Nothing here can make a device honest; but what is missing is not made up either."""

    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            await dealing(device, watched)
            await asyncio.sleep(1)
            device.hand(Break(name="chain-wrong"))
            stood = watched.keeper.cursor()
            device.hand(Draw(count=2))
            await watched.until(S.RESUMING)
            assert watched.keeper.cursor() == stood
            assert watched.supervisor.held is not None

    simulate(main())
