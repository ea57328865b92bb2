"""Kept first, acknowledged then, handed out last: each record exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from drivers.devices import DeviceEvent, NotReady, Shoe, State
from drivers.handing import MOST_HANDED
from drivers.journal_entries import JournalRefused
from drivers.session import events
from drivers.session.acknowledge import KEEP_WAIT
from firmware_protocol.device.control import Break, CutPower, Draw, Freeze, Load, Plug
from firmware_protocol.messages.enums import LockState
from firmware_protocol.messages.limits import WINDOW
from tests.support.drivers.dealing import FULL_DISK, acknowledged, dealing, head, same
from tests.support.drivers.simulated import running, simulate, table

S = State


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
            watched.keeper.failing = None
            await asyncio.sleep(5)
            assert acknowledged(device) == stood
            assert watched.keeper.cursor().seq == stood
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(1)
            assert acknowledged(device) == stood + 5
            same(watched, device, watched.events())
            assert len(watched.of(events.KeepMended)) == 1
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
            for hand in (Plug(connected=False), Plug(connected=True), CutPower(), Freeze(on=True)):
                device.hand(hand)
                await asyncio.sleep(3)
            device.hand(Freeze(on=False))
            await asyncio.sleep(10)
            assert watched.state is S.UNKEPT
            assert acknowledged(device) == stood
            assert len(watched.of(events.KeepFailed)) == 1
            watched.keeper.failing = None
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(1)
            same(watched, device, watched.events())

    simulate(main())


class Odd(Exception):
    """Nothing that a keeper should raise."""


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (ValueError("record 5 is not the one after 3"), "ValueError: record 5 is not the one"),
        (KeyError("cards"), "KeyError: 'cards'"),
        (JournalRefused("a journal", "has mode 0644"), "JournalRefused: a journal: has mode 0644"),
        (Odd(), "Odd"),
        (OSError(errno.EIO, "the disk says no"), "[Errno 5] the disk says no"),
        (asyncio.CancelledError(), "the keeper has given up"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else "",
)
def test_whatever_a_keeper_fails_of_nothing_is_kept_any_more(
    tmp_path: Path, problem: BaseException, why: str
) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched), running(watched):
            shoe = await dealing(device, watched)
            await asyncio.sleep(1)
            stood, keep = head(device), watched.keeper.keep

            async def broken(_: object) -> None:
                raise problem

            watched.keeper.keep = broken
            device.hand(Draw(count=3))
            await watched.until(S.UNKEPT)
            await asyncio.sleep(1)
            assert acknowledged(device) == stood
            assert watched.supervisor.why.startswith(why)
            (failed,) = watched.of(events.KeepFailed)
            assert failed.why.startswith(why)
            assert await shoe.lock() is LockState.LOCKED
            watched.keeper.keep = keep
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
            assert watched.of(events.KeepFailed)[0].why == "it was not kept within 10 s"
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
            assert len(watched.of(events.Paused)) == 1
            waiting = len(watched.keeper.records)
            await asyncio.sleep(30)
            assert len(watched.keeper.records) == waiting
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 5))
                await asyncio.sleep(0.05)
            same(watched, device, taken)
            await asyncio.sleep(1)
            assert len(watched.of(events.Paused)) == len(watched.of(events.WentOn))
            assert watched.of(events.WentOn)[0].paused_us > 30_000_000

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


def test_a_table_that_does_not_listen_can_lock_a_shoe_that_was_replugged(tmp_path: Path) -> None:
    """What is kept waits for the table; the session does not."""

    async def main() -> None:
        async with table(tmp_path, room=2) as (_, device, watched), running(watched):
            shoe = await dealing(device, watched)
            device.hand(Draw(count=200))
            await asyncio.sleep(5)
            assert watched.queue.full()
            for times in range(1, 9):
                device.hand(Plug(connected=False))
                await asyncio.sleep(0.5)
                device.hand(Plug(connected=True))
                await watched.until(S.READY, within=5)
                assert await shoe.lock() is LockState.LOCKED
                assert await shoe.open_gate() is LockState.OPEN
                await asyncio.sleep(3)
                most = watched.queue.maxsize + min(1 + times * WINDOW, MOST_HANDED) + WINDOW
                assert len(watched.keeper.records) <= most
            # Nobody has taken a single one, and what waits has a bound.
            assert watched.supervisor._handing.waiting == MOST_HANDED
            assert len(watched.keeper.records) == 2 + MOST_HANDED
            taken: list[DeviceEvent] = []
            await watched.until(S.READY)
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 10))
            same(watched, device, taken)

    simulate(main())


def test_a_device_that_does_not_wait_is_not_kept_for_ever(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path, room=2) as (_, device, watched), running(watched):
            await dealing(device, watched)
            device.hand(Break(name="window-ignored"))
            device.hand(Draw(count=200))
            await asyncio.sleep(40)
            assert watched.state is S.READY
            assert head(device) > 2 + MOST_HANDED + 2 * WINDOW
            assert len(watched.keeper.records) == 2 + MOST_HANDED
            taken: list[DeviceEvent] = []
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 10))
            same(watched, device, taken)

    simulate(main())


def test_a_paused_device_stays_so_when_the_keeper_is_mended(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path, room=2) as (_, device, watched), running(watched):
            await dealing(device, watched)
            device.hand(Draw(count=40))
            await asyncio.sleep(6)
            kept = len(watched.keeper.records)
            watched.supervisor._keeping.fail(FULL_DISK)
            watched.supervisor.mended(watched.keeper)
            await watched.until(S.READY)
            await asyncio.sleep(5)
            assert len(watched.keeper.records) <= kept + WINDOW
            assert len(watched.of(events.Paused)) == 1
            taken: list[DeviceEvent] = []
            while len(taken) < head(device):
                taken.append(await asyncio.wait_for(watched.queue.get(), 5))
            same(watched, device, taken)

    simulate(main())
