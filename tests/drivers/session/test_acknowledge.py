"""The acknowledger alone: one call of the store at a time, in order, each with a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drivers.session import AdoptedRing, StoreFailed
from drivers.session.acknowledge import (
    MAX_WAITING,
    SETTLE_TIMEOUT,
    STORE_TIMEOUT,
    Acknowledger,
    StoredRecord,
)
from firmware_protocol.host import RingHeld
from firmware_protocol.messages import DeviceClass, LogPressure, Verdict
from firmware_protocol.tablelink import NO_CHAIN, EventRecord, chained
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import FakeLine
from tests.support.drivers.simulated import MemoryStore, never, now_us, stopped, stubborn_store

FULL_DISK = OSError("no room")
RING = AdoptedRing(RingHeld(Verdict.GAP, 77, 5, 9, b"headhead"), ("Ann", "Bob"))


def ring(count: int) -> list[EventRecord]:
    records: list[EventRecord] = []
    chain = NO_CHAIN
    for seq in range(1, count + 1):
        event = LogPressure(seq % 100)
        records.append(chained(chain, epoch=77, seq=seq, boot=1, t_us=seq, event=event))
        chain = records[-1].chain
    return records


class Desk:
    """An acknowledger, its store, and what it has returned."""

    def __init__(self) -> None:
        self.store: Any = MemoryStore()
        self.acknowledger = Acknowledger(self.store, FakeLine(DeviceClass.SHOE).driver, "SH-1")
        self.stored: list[StoredRecord] = []
        self.failures: list[Exception] = []

    async def run(self) -> None:
        while True:
            try:
                self.stored.append(await self.acknowledger.store_next())
            except StoreFailed as problem:
                self.failures.append(problem.first)
                self.acknowledger.reset()

    def enqueue(self, records: list[EventRecord]) -> None:
        for record in records:
            self.acknowledger.enqueue(record, 0)

    @property
    def seqs(self) -> list[int]:
        return [one.seq for one in self.stored]


@asynccontextmanager
async def at_work() -> AsyncIterator[Desk]:
    desk = Desk()
    task = asyncio.create_task(desk.run())
    try:
        yield desk
        assert not task.done(), task
    finally:
        await stopped(task)


@simulated
async def test_settled_waits_for_all_that_has_arrived() -> None:
    async with at_work() as desk:
        records = ring(8)
        desk.store.slow = 1.0
        desk.enqueue(records[:3])
        await asyncio.sleep(0.5)
        desk.enqueue(records[3:])
        await desk.acknowledger.settled()
        assert desk.seqs == desk.store.seqs == list(range(1, 9))
        assert [one.event.origin.seq for one in desk.stored] == desk.seqs


@simulated
async def test_settled_has_a_timeout() -> None:
    """Even for a store that ignores its cancellation."""
    async with at_work() as desk:
        may_end = asyncio.Event()
        desk.store.store = stubborn_store(may_end)
        desk.enqueue(ring(2))
        await asyncio.sleep(0)
        began = now_us()
        with pytest.raises(StoreFailed) as failed:
            await desk.acknowledger.settled()
        assert now_us() - began == SETTLE_TIMEOUT * 1_000_000
        assert isinstance(failed.value.first, TimeoutError)
        desk.acknowledger.reset()
        may_end.set()
        await asyncio.sleep(0.1)
        assert (desk.stored, desk.failures) == ([], [])


@simulated
async def test_while_an_adoption_is_stored_no_record_is() -> None:
    async with at_work() as desk:
        order: list[str] = []

        async def adopt(_: AdoptedRing) -> None:
            order.append("adopt")
            await asyncio.sleep(2)
            order.append("adopted")

        async def store(*_: object) -> None:
            order.append("store")

        desk.store.adopt, desk.store.store = adopt, store
        adopting = asyncio.create_task(desk.acknowledger.adopt(RING))
        await asyncio.sleep(0.5)
        desk.enqueue(ring(1))
        await desk.acknowledger.settled()
        assert order == ["adopt", "adopted", "store"]
        await adopting


@simulated
async def test_settled_waits_for_an_adoption() -> None:
    async with at_work() as desk:

        async def adopt(_: AdoptedRing) -> None:
            await asyncio.sleep(2)

        desk.store.adopt = adopt
        adopting = asyncio.create_task(desk.acknowledger.adopt(RING))
        await asyncio.sleep(0.5)
        await desk.acknowledger.settled()
        assert adopting.done()


@simulated
async def test_an_adoption_has_a_timeout() -> None:
    desk = Desk()
    desk.store.adopt = never
    began = now_us()
    with pytest.raises(StoreFailed, match="not stored within 10 s"):
        await desk.acknowledger.adopt(RING)
    assert now_us() - began == STORE_TIMEOUT * 1_000_000


@simulated
async def test_after_a_reset_no_earlier_record_counts() -> None:
    """What the store did with it is not known any more: its position is read again."""
    async with at_work() as desk:
        records = ring(4)
        desk.store.slow = 1.0
        desk.enqueue(records[:2])
        await asyncio.sleep(0.5)
        desk.acknowledger.reset()
        await desk.acknowledger.settled()
        assert (desk.seqs, desk.store.seqs) == ([], [1])
        desk.enqueue(records[1:])
        await desk.acknowledger.settled()
        assert (desk.seqs, desk.failures) == ([2, 3, 4], [])


@simulated
async def test_a_failure_drops_the_records_behind_it() -> None:
    async with at_work() as desk:
        desk.store.failing = FULL_DISK
        desk.enqueue(ring(3))
        await desk.acknowledger.settled()
        assert (desk.failures, desk.stored, desk.store.records) == ([FULL_DISK], [], [])


@simulated
async def test_a_link_that_delivers_more_than_it_may_is_a_mistake() -> None:
    desk = Desk()
    desk.enqueue(ring(MAX_WAITING))
    with pytest.raises(asyncio.QueueFull):
        desk.enqueue(ring(1))
