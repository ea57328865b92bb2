"""Keeping and handing out by themselves: one thing at a time, in order, each with an end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drivers.devices import DeviceEvent
from drivers.handing import MOST_HANDED, Handing
from drivers.session import Adoption, Come, NotKept
from drivers.session.acknowledge import KEEP_WAIT, MOST, SETTLE_WAIT, Keeping
from firmware_protocol.tablelink.plaintext import EventRecord
from tests.support.drivers.journal_book import adoption, ring
from tests.support.drivers.simulated import MemoryKeeper, now_us, simulate, stopped

FULL_DISK = OSError("no room")


class Desk:
    """A keeping with all that it needs, and what it did."""

    def __init__(self) -> None:
        self.keeper = MemoryKeeper()
        self.room = 100
        self.kept: list[int] = []
        self.handed: list[int] = []
        self.failures: list[Exception] = []
        self.keeping = Keeping(
            self.keeper,
            room=lambda: self.room,
            kept=self.kept.append,
            hand=self._hand,
            failed=self.failures.append,
        )

    def _hand(self, come: Come) -> None:
        self.room -= 1
        assert self.kept[-1] >= come.record.seq, "handed out before it was acknowledged"
        self.handed.append(come.record.seq)

    def come(self, records: list[EventRecord]) -> None:
        for record in records:
            self.keeping.come(record, 0)


@asynccontextmanager
async def at_work(work: Callable[[], Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(work())
    try:
        yield
        assert not task.done(), task
    finally:
        await stopped(task)


def test_no_more_is_kept_than_there_is_room_for() -> None:
    async def main() -> None:
        desk, records = Desk(), ring(8)
        desk.room = 3
        async with at_work(desk.keeping.run):
            desk.come(records)
            await asyncio.sleep(1)
            assert desk.handed == desk.keeper.seqs == [1, 2, 3]
            desk.room = 2
            desk.keeping.look()
            await asyncio.sleep(1)
            assert desk.handed == desk.keeper.seqs == [1, 2, 3, 4, 5]
            # Nobody waits for room: the rest was not acknowledged, and comes again.
            began = now_us()
            await desk.keeping.settled()
            assert now_us() == began
            desk.room = 100
            desk.keeping.look()
            await asyncio.sleep(1)
            assert desk.handed == [1, 2, 3, 4, 5]
            desk.come(records[5:])
            await desk.keeping.settled()
            assert desk.handed == desk.keeper.seqs == list(range(1, 9))
            assert desk.kept == [3, 5, 8]

    simulate(main())


def test_settled_waits_for_all_that_can_be_kept() -> None:
    async def main() -> None:
        desk, records = Desk(), ring(8)
        desk.keeper.slow = 1.0
        async with at_work(desk.keeping.run):
            desk.come(records[:3])
            await asyncio.sleep(0.5)
            desk.come(records[3:])
            await desk.keeping.settled()
            assert desk.kept == [3, 8]

    simulate(main())


def test_settled_does_not_wait_for_ever() -> None:
    """Not even for a keeper that does not let itself be called off."""

    async def main() -> None:
        desk, may_end = Desk(), asyncio.Event()

        async def stubborn(_: object) -> None:
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue

        desk.keeper.keep = stubborn  # type: ignore[method-assign, assignment]
        async with at_work(desk.keeping.run):
            desk.come(ring(1))
            await asyncio.sleep(0)
            began = now_us()
            await desk.keeping.settled()
            assert now_us() - began == SETTLE_WAIT * 1_000_000
            assert isinstance(desk.keeping.failure, TimeoutError)
            assert desk.failures == [desk.keeping.failure]
            with pytest.raises(NotKept):
                desk.keeping.check()
            may_end.set()
            await asyncio.sleep(0.1)
            assert (desk.kept, desk.handed) == ([], [])

    simulate(main())


def test_while_an_adoption_is_kept_no_record_is() -> None:
    async def main() -> None:
        desk, records = Desk(), ring(3)
        at_once: list[str] = []

        async def adopt(_: Adoption) -> None:
            at_once.append("adopt")
            await asyncio.sleep(2)
            at_once.append("adopted")

        async def keep(_: object) -> None:
            at_once.append("keep")

        desk.keeper.adopt = adopt  # type: ignore[method-assign, assignment]
        desk.keeper.keep = keep  # type: ignore[method-assign, assignment]
        async with at_work(desk.keeping.run):
            adopting = asyncio.create_task(desk.keeping.adopt(adoption()))
            await asyncio.sleep(0.5)
            desk.come(records)
            await desk.keeping.settled()
            assert at_once == ["adopt", "adopted", "keep"]
            await adopting

    simulate(main())


def test_an_adoption_has_a_deadline_and_looks_at_what_has_failed() -> None:
    async def main() -> None:
        desk = Desk()

        async def never(_: Adoption) -> None:
            await asyncio.sleep(3600)

        desk.keeper.adopt = never  # type: ignore[method-assign, assignment]
        began = now_us()
        for _ in range(2):
            with pytest.raises(NotKept, match="not kept within 10 s"):
                await desk.keeping.adopt(adoption())
            assert now_us() - began == KEEP_WAIT * 1_000_000
        assert len(desk.failures) == 1
        desk.keeping.mended(desk.keeper)
        desk.keeping.check()

    simulate(main())


def test_the_first_cause_stands() -> None:
    async def main() -> None:
        desk = Desk()
        async with at_work(desk.keeping.run):
            desk.keeping.fail(FULL_DISK)
            desk.keeping.fail(ValueError("and more"))
            desk.come(ring(3))
            await desk.keeping.settled()
            assert desk.keeping.failure is FULL_DISK
            assert desk.failures == [FULL_DISK]
            assert desk.keeper.records == []

    simulate(main())


def test_a_failure_beside_a_batch_counts_for_it_too() -> None:
    """What the keeper did with it is not known any more: it is asked when it is mended."""

    async def main() -> None:
        desk, records = Desk(), ring(4)
        desk.keeper.slow = 1.0
        async with at_work(desk.keeping.run):
            desk.come(records[:2])
            await asyncio.sleep(0.5)
            desk.keeping.fail(FULL_DISK)
            await desk.keeping.settled()
            assert (desk.kept, desk.handed) == ([], [])
            desk.keeping.mended(desk.keeper)
            desk.come(records[2:])
            await desk.keeping.settled()
            assert desk.handed == [3, 4]

    simulate(main())


def test_a_mistake_of_our_own_is_no_failure_of_the_keeper() -> None:
    async def main() -> None:
        desk = Desk()

        def broken(_: Come) -> None:
            raise KeyError("a bug")

        desk.keeping._hand = broken
        task = asyncio.create_task(desk.keeping.run())
        desk.come(ring(1))
        with pytest.raises(KeyError, match="a bug"):
            await task
        assert desk.failures == []

    simulate(main())


def test_a_link_that_hands_out_more_than_it_may_is_a_mistake() -> None:
    async def main() -> None:
        desk = Desk()
        desk.come(ring(MOST))
        with pytest.raises(OverflowError):
            desk.come(ring(MOST + 1)[MOST:])

    simulate(main())


# --- handing out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_what_is_handed_out_comes_in_order_and_once(seed: int) -> None:
    async def main() -> None:
        dice, records = random.Random(seed), ring(300)
        queue: asyncio.Queue[Any] = asyncio.Queue(3)
        fulls: list[int] = []
        more = asyncio.Event()
        handing = Handing(
            queue,
            typed=lambda come: come.record.seq,  # type: ignore[arg-type, return-value]
            full=lambda: fulls.append(queue.qsize()),
            room=more.set,
        )
        taken: list[int] = []

        async def take() -> None:
            while True:
                taken.append(await queue.get())
                await asyncio.sleep(dice.choice((0, 0, 0.01, 0.3)))

        async with at_work(handing.run), at_work(take):
            for record in records:
                while not handing.room():
                    more.clear()
                    await more.wait()
                handing.hand(Come(record, 0))
                assert handing.waiting <= MOST_HANDED
                if dice.random() < 0.2:
                    await asyncio.sleep(dice.choice((0, 0.01, 0.5)))
            await asyncio.sleep(60)
            assert taken == [one.seq for one in records]
            assert handing.waiting == 0
            assert handing.room() == MOST_HANDED
            assert fulls[0] == 3

    simulate(main())


def test_more_than_there_is_room_for_is_a_mistake() -> None:
    async def main() -> None:
        queue: asyncio.Queue[DeviceEvent] = asyncio.Queue(1)
        typed: Any = lambda come: come  # noqa: E731
        handing = Handing(queue, typed=typed, full=lambda: None, room=lambda: None)
        for record in ring(1 + MOST_HANDED):
            handing.hand(Come(record, 0))
        with pytest.raises(OverflowError):
            handing.hand(Come(ring(1)[0], 0))

    simulate(main())
