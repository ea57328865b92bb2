"""Entries that the table's queue or its record did not accept: counted, and the counts recorded."""

import asyncio
import errno
from typing import Any

from msgspec import to_builtins

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.format.records import RecordActor, RecordEntry
from controller.procedure.model.state import Step
from controller.table.loop.loop import MAX_WAITING
from controller.table.loop.unrecorded import MAX_NAMED
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import now_us, until
from tests.support.table.typed.listening import NOTE, Rig, at, card, on_rig, source

ROOMLESS = DiskFull("here", "no room", "free some")


def about(serial: str) -> RecordEntry:
    return RecordEntry(
        "link", RecordActor("device", "shoe"), {"what": "PortGone", "device": serial, "why": "x"}
    )


def counts(made: Rig) -> list[dict[str, Any]]:
    """The data of all entries with counts."""
    every = [to_builtins(one.data) for one in made.entries if one.kind == "link"]
    return [data for data in every if data["what"] == "not_recorded"]


async def fill(made: Rig) -> None:
    """The record hangs, and as many entries wait as may."""
    made.slow = 1.0
    made.table.later(about("SH-1"))
    await until(lambda: bool(made.log))
    for _ in range(MAX_WAITING):
        made.table.later(about("SH-1"))


@on_rig()
async def test_a_full_queue_is_recorded_with_its_span_and_devices(made: Rig) -> None:
    await fill(made)
    first = now_us()
    made.table.later(about("SH-1"))
    await asyncio.sleep(0.5)
    last = now_us()
    made.table.later(about("ST-1"))
    made.table.later(about("ST-1"))
    made.table.later(NOTE)
    made.slow = 0.001
    await until(lambda: bool(counts(made)))
    assert counts(made) == [
        {
            "what": "not_recorded",
            "count": 3,
            "others": 1,
            "first": first,
            "last": last,
            "devices": {"SH-1": 1, "ST-1": 2},
        }
    ]
    assert made.kinds.count("link") == MAX_WAITING + 2
    assert made.entries[-1].by == RecordActor("device", "controller")
    assert (made.table.unrecorded.total, made.table.unrecorded.pending) == (4, False)
    assert made.table.seq == 100 + len(made.entries)
    await made.table.record(NOTE)
    assert len(counts(made)) == 1


@on_rig()
async def test_a_queue_that_is_never_empty_does_not_hide_the_counts(made: Rig) -> None:
    """The counts come at least every ten seconds, and never for each dropped entry."""
    await fill(made)
    made.slow = 0.02
    dropped = 0
    while not counts(made):
        before = made.table.unrecorded.total
        made.table.later(about("SH-1"))
        made.table.later(about("SH-1"))
        dropped += made.table.unrecorded.total - before
        assert made.table.waiting > 0
        await asyncio.sleep(0.02)
    assert counts(made)[0]["count"] <= dropped
    assert dropped > 100
    await until(lambda: not made.table.unrecorded.pending)
    assert sum(one["count"] for one in counts(made)) == made.table.unrecorded.total
    assert len(counts(made)) <= 2


@on_rig(Step.TURN)
async def test_a_stopped_table_counts_and_records_when_it_works_again(made: Rig) -> None:
    made.table.fail(ROOMLESS)
    for _ in range(1000):
        made.table.later(about("SH-1"))
        await asyncio.sleep(0)
    assert made.entries == []
    assert await made.table.try_again("again")
    await until(lambda: bool(counts(made)))
    assert [one["count"] for one in counts(made)] == [1000]


@on_rig()
async def test_counts_that_are_refused_are_not_lost(made: Rig) -> None:
    made.table.fail(ROOMLESS)
    made.table.later(about("SH-1"))
    await asyncio.sleep(0.01)
    # The record accepts one entry, and refuses the counts that follow it.
    again = asyncio.create_task(made.table.try_again("again"))
    await until(lambda: made.kinds == ["note"])
    made.problem = ROOMLESS
    assert await again
    await until(lambda: made.table.stopped is not None)
    made.table.later(about("SH-1"))
    made.problem = None
    assert await made.table.try_again("again")
    await until(lambda: bool(counts(made)))
    assert [(one["count"], one["devices"]) for one in counts(made)] == [(2, {"SH-1": 2})]


@on_rig()
async def test_what_is_dropped_while_the_counts_are_written_is_in_the_next_ones(made: Rig) -> None:
    made.table.fail(ROOMLESS)
    made.table.later(about("SH-1"))
    await asyncio.sleep(0.01)
    made.slow = 1.0
    assert await made.table.try_again("again")
    await until(lambda: made.log.count(("append", 1)) == 2)  # the counts are being written
    for _ in range(MAX_WAITING + 5):
        made.table.later(about("ST-1"))
    made.slow = 0.001
    await until(lambda: len(counts(made)) == 2)
    assert [one["devices"] for one in counts(made)] == [{"SH-1": 1}, {"ST-1": 5}]
    assert counts(made)[1]["first"] >= counts(made)[0]["last"]


@on_rig()
async def test_more_serial_numbers_than_a_table_has_are_counted_together(made: Rig) -> None:
    made.table.fail(ROOMLESS)
    for number in range(MAX_NAMED + 10):
        made.table.later(about(f"X-{number}"))
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert await made.table.try_again("again")
    await until(lambda: bool(counts(made)))
    found = counts(made)[0]
    assert (found["count"], len(found["devices"])) == (MAX_NAMED + 10, MAX_NAMED + 1)
    assert found["devices"][""] == 10


# --- at the end -------------------------------------------------------------------------------


async def closed(made: Rig) -> None:
    """It closes while entries are dropped: the queue is full, and it takes nothing more."""
    task = asyncio.create_task(made.table.run())
    await asyncio.sleep(0)
    made.log.clear()
    await fill(made)
    made.table.later(about("SH-1"))
    closing = asyncio.create_task(made.table.close())
    await asyncio.sleep(0)
    made.table.later(about("ST-1"))
    made.slow = 0.001
    await closing
    await task


@simulated
async def test_the_counts_are_the_last_entry_of_a_table_that_ends() -> None:
    made = Rig(at(Step.CLOSED))
    await closed(made)
    assert [one["devices"] for one in counts(made)] == [{"SH-1": 1, "ST-1": 1}]
    assert made.entries[-1].kind == "link"


@simulated
async def test_a_stopped_table_that_ends_offers_its_counts_to_the_record() -> None:
    """What a full disk leaves at the end of a segment may be enough for them."""
    made = Rig(at(Step.CLOSED))
    task = asyncio.create_task(made.table.run())
    made.table.fail(ROOMLESS)
    made.table.later(about("SH-1"))
    await asyncio.sleep(0.01)
    await made.table.close()
    await task
    assert [one["count"] for one in counts(made)] == [1]
    assert made.entries[-1].reserved
    assert made.table.stopped is ROOMLESS


@simulated
async def test_a_failed_record_ends_without_the_counts() -> None:
    made = Rig(at(Step.CLOSED))
    task = asyncio.create_task(made.table.run())
    made.problem = LogFailed("here", OSError(errno.EIO, "broken"))
    made.table.fail(made.problem)
    made.table.later(about("SH-1"))
    await asyncio.sleep(0.01)
    await made.table.close()
    await task
    assert made.entries == []


@on_rig(Step.TURN)
async def test_device_events_are_never_counted_as_dropped(made: Rig) -> None:
    await fill(made)
    told = asyncio.ensure_future(made.table.device_event(card(3), source()))
    made.slow = 0.001
    await told
    assert made.table.unrecorded.total == 0
