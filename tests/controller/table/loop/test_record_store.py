"""The record as the keeper of the devices' logs: event and cursor in one write, each once."""

from __future__ import annotations

import asyncio

import pytest

from controller.audit.errors import DiskFull
from controller.procedure.model.state import Step
from controller.table.loop import DeviceRecordStore, StoredPosition, TableStopped
from controller.table.loop.loop import PositionUnknown
from drivers.devices import Origin
from drivers.devices.shoe import CoverMoved
from drivers.session import AdoptedRing
from firmware_protocol.host import NO_CURSOR, RecordCursor, RingHeld
from firmware_protocol.messages import Cover, Verdict
from firmware_protocol.tablelink import NO_CHAIN, EventRecord, chained
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import now_us, stopped, until
from tests.support.table.loop_rig import Rig, at, rig

SERIAL = "SH-1"


def store(made: Rig, stood: StoredPosition | None = None) -> DeviceRecordStore:
    return DeviceRecordStore(made.table, "shoe", SERIAL, stood or StoredPosition())


async def keep(one: DeviceRecordStore, records: list[EventRecord]) -> None:
    for record in records:
        origin = Origin(SERIAL, record.epoch, record.seq, record.boot, record.t_us, now_us())
        await one.store(record, CoverMoved(origin, record.event.open))  # type: ignore[attr-defined]


def ring(
    count: int, *, epoch: int = 5, first: int = 1, chain: bytes = NO_CHAIN
) -> list[EventRecord]:
    """Records of a ring: the cover, opened and closed."""
    made = []
    for seq in range(first, first + count):
        event = Cover(open=bool(seq % 2))
        record = chained(chain, epoch=epoch, seq=seq, boot=1, t_us=seq, event=event)
        chain = record.chain
        made.append(record)
    return made


def adoption(*, skip: bool = False) -> AdoptedRing:
    return AdoptedRing(RingHeld(Verdict.NEW_EPOCH, 5, 4, 9, b"headhead"), ("Flo", "Bob"), skip)


@simulated
async def test_each_record_has_its_cursor() -> None:
    async with rig() as made:
        one, records = store(made), ring(3)
        assert (one.cursor(), dict(one.recent())) == (NO_CURSOR, {})
        await keep(one, records)
        cursors = [entry.cursor for entry in made.entries]
        assert [at and (at.device, at.epoch, at.seq, at.chain, at.t_us) for at in cursors] == [
            (SERIAL, 5, record.seq, record.chain.hex(), record.seq) for record in records
        ]
        assert one.cursor() == RecordCursor(5, 3, records[-1].chain)
        assert dict(one.recent()) == {record.seq: record.chain for record in records}
        assert one.seq == 3


@pytest.mark.parametrize(
    "wrong",
    [ring(1, first=3)[0], ring(1, first=1)[0], ring(1, epoch=6, first=2)[0]],
    ids=["a gap", "again", "another ring"],
)
@simulated
async def test_what_does_not_go_on_is_not_taken(wrong: EventRecord) -> None:
    """The link has seen to that already; a record that is taken twice would be played twice."""
    async with rig() as made:
        one = store(made)
        await keep(one, ring(1))
        with pytest.raises(ValueError, match="does not follow"):
            await keep(one, [wrong])
        assert len(made.entries) == 1
        assert one.seq == 1


@simulated
async def test_it_goes_on_from_where_the_record_stood() -> None:
    async with rig() as made:
        before = ring(4)
        recent = {record.seq: record.chain for record in before}
        one = store(made, StoredPosition(RecordCursor(5, 4, before[-1].chain), recent))
        await keep(one, ring(2, first=5, chain=before[-1].chain))
        assert (one.seq, len(one.recent())) == (6, 6)


@simulated
async def test_nobody_says_how_far_it_goes_while_something_is_on_its_way() -> None:
    async with rig() as made:
        made.slow = 1.0
        one = store(made)
        keeping = asyncio.create_task(keep(one, ring(1)))
        await until(lambda: bool(made.log))
        with pytest.raises(PositionUnknown):
            one.cursor()
        # Whoever kept gives up; it comes to the disk all the same, and is not taken again.
        await stopped(keeping)
        with pytest.raises(PositionUnknown):
            one.recent()
        await until(lambda: bool(made.entries))
        assert one.cursor().seq == 1


@simulated
async def test_what_the_record_refuses_is_not_kept() -> None:
    async with rig(Step.TURN) as made:
        one = store(made)
        made.problem = DiskFull("here", "no room", "free some")
        with pytest.raises(TableStopped):
            await keep(one, ring(3))
        assert one.cursor() == NO_CURSOR
        made.problem = None
        await made.table.try_again("again")
        await keep(one, ring(3))
        assert one.seq == 3


@simulated
async def test_a_cursor_goes_back_only_with_an_adoption() -> None:
    async with rig() as made:
        one = store(made, StoredPosition(RecordCursor(5, 9, b"lasthead"), {9: b"lasthead"}))
        with pytest.raises(ValueError, match="does not follow"):
            await keep(one, ring(1, first=4))
        await one.adopt(adoption())
        entry = made.entries[-1]
        assert (entry.kind, entry.sign, entry.cursor) == ("link", True, None)
        assert (entry.data["what"], entry.data["next"]) == ("adopted", 4)
        assert entry.data["two"] == ["Flo", "Bob"]
        assert one.cursor().seq == 9  # until it has come
        await keep(one, ring(2, first=4))
        assert one.seq == 5
        with pytest.raises(ValueError, match="does not follow"):
            await keep(one, ring(1, first=4))


@simulated
async def test_an_adoption_that_lets_the_rest_go_has_its_cursor() -> None:
    async with rig() as made:
        one = store(made)
        await one.adopt(adoption(skip=True))
        cursor = made.entries[-1].cursor
        assert cursor is not None
        assert (cursor.epoch, cursor.seq, cursor.chain) == (5, 9, b"headhead".hex())
        assert one.cursor() == RecordCursor(5, 9, b"headhead")
        await keep(one, ring(1, first=10, chain=b"headhead"))
        assert one.seq == 10


@simulated
async def test_an_adoption_that_is_not_recorded_is_none() -> None:
    async with rig() as made:
        one = store(made)
        made.problem = DiskFull("here", "no room", "free some")
        with pytest.raises(TableStopped):
            await one.adopt(adoption(skip=True))
        assert one.cursor() == NO_CURSOR


@simulated
async def test_a_table_that_closes_keeps_nothing_more() -> None:
    made = Rig(at(Step.CLOSED))
    task = asyncio.create_task(made.table.run())
    one = store(made)
    await made.table.close()
    await task
    with pytest.raises(TableStopped):
        await keep(one, ring(1))
    assert one.cursor() == NO_CURSOR
