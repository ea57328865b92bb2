"""A disk without room for the next segment: recorded once, shown with the play that is left, and
cleared when there is room again."""

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from controller.audit.files import Disk
from controller.audit.format.records import RecordEntry
from controller.audit.log import RecordRoom
from controller.procedure.model.state import State
from controller.table.loop import RequestResult, TableStopped
from controller.table.memory import SPACE_LEFT, SpaceStatus
from controller.table.running import SpaceMonitor, bytes_an_hour
from controller.table.running.space_monitor import CHECK_INTERVAL, ENDED, MIN_WINDOW
from firmware_protocol.device import Plug
from tests.support.asynchronous import raised, simulated
from tests.support.drivers.simulated import stopped, until
from tests.support.table.simulated.serving import DEALER, Served, kept, run, served

WHY = "No space left on device"
SEATS = 7
HOURLY = bytes_an_hour(SEATS)


class Table:
    """A table whose record has the room that the test says."""

    def __init__(self) -> None:
        self.room = RecordRoom("", 1 << 30, 0)
        self.shown: list[SpaceStatus] = []
        self.entries: list[RecordEntry] = []
        self.stopped = False
        self.retries = 0
        self.monitor = SpaceMonitor(self, lambda: self.room, self._retry, SEATS)

    def _retry(self) -> None:
        self.retries += 1

    def set_space(self, space: SpaceStatus) -> None:
        self.shown.append(space)

    async def record(self, entry: RecordEntry) -> RequestResult:
        if self.stopped:
            raise TableStopped("no room")
        self.entries.append(entry)
        return RequestResult((), (entry,), (), State())

    async def full(self, left: int, written: int = 0) -> SpaceStatus:
        """What is shown when a segment cannot be made."""
        self.room = RecordRoom(WHY, left, written)
        await self.monitor.check()
        return self.shown[-1]


@simulated
async def test_it_is_recorded_once_and_cleared_once() -> None:
    table = Table()
    await table.monitor.check()
    assert (table.entries, table.shown, table.retries) == ([], [SPACE_LEFT], 0)
    for _ in range(3):
        await table.full(2 * HOURLY)
    assert (len(table.entries), table.retries) == (1, 3)
    detail = {"problem": WHY, "bytes": 2 * HOURLY, "minutes": 120}
    assert (table.entries[0].kind, table.entries[0].data) == (
        "fault",
        {"what": "disk_full", "detail": detail},
    )
    table.room = RecordRoom("", 1 << 30, 0)
    for _ in range(3):
        await table.monitor.check()
    assert [(one.kind, one.data) for one in table.entries[1:]] == [("note", {"text": ENDED})]
    assert (table.shown[-1], table.retries) == (SPACE_LEFT, 3)
    await table.full(HOURLY)
    assert len(table.entries) == 3


@simulated
async def test_another_cause_is_recorded_too() -> None:
    table = Table()
    await table.full(HOURLY)
    for _ in range(2):
        table.room = RecordRoom("Read-only file system", HOURLY, 0)
        await table.monitor.check()
    problems = [one.data["detail"]["problem"] for one in table.entries]
    assert problems == [WHY, "Read-only file system"]
    table.room = RecordRoom("", HOURLY, 0)
    await table.monitor.check()
    assert [one.kind for one in table.entries] == ["fault", "fault", "note"]


@simulated
async def test_what_a_stopped_table_cannot_record_is_recorded_later() -> None:
    table = Table()
    table.stopped = True
    assert await table.full(0) == SpaceStatus(WHY, 0)
    assert table.entries == []
    table.stopped = False
    await table.monitor.check()
    assert [one.data["what"] for one in table.entries] == ["disk_full"]
    table.stopped, table.room = True, RecordRoom("", 1, 0)
    await table.monitor.check()
    table.stopped = False
    await table.monitor.check()
    assert [one.kind for one in table.entries] == ["fault", "note"]


@pytest.mark.parametrize(
    ("left", "minutes"),
    [(HOURLY * 5 // 2, 150), (HOURLY // 2 + 60, 30), (HOURLY // 6 + 60, 10), (HOURLY // 6 - 60, 0)],
)
def test_the_play_that_is_left_is_shown_in_steps(left: int, minutes: int) -> None:
    async def main() -> None:
        assert await Table().full(left) == SpaceStatus(WHY, minutes)

    asyncio.run(main())


@simulated
async def test_a_faster_table_has_less_time() -> None:
    """The pace is that of the last hour, if it is higher than the one that is assumed."""
    table = Table()
    began = asyncio.get_running_loop().time()
    written = 0
    while asyncio.get_running_loop().time() - began < MIN_WINDOW:
        assert (await table.full(4 * HOURLY, written)).minutes == 240
        await asyncio.sleep(CHECK_INTERVAL)
        written += round(2 * HOURLY * CHECK_INTERVAL / 3600)
    assert (await table.full(4 * HOURLY, written)).minutes in (110, 120)
    for _ in range(2 * 360):  # an hour and more without any play
        await asyncio.sleep(CHECK_INTERVAL)
        await table.monitor.check()
    assert table.shown[-1].minutes == 240


@simulated
async def test_it_looks_again_and_again() -> None:
    table = Table()
    running = asyncio.create_task(table.monitor.run())
    table.room = RecordRoom(WHY, HOURLY, 0)
    await asyncio.sleep(3.5 * CHECK_INTERVAL)
    assert table.retries == 4
    await stopped(running)


def test_a_segment_is_hours_of_play() -> None:
    """So the announcement comes that early: a segment of eight MiB is left when the next one cannot
    be made."""
    assert 8 * (1 << 20) / HOURLY > 2


class FullDisk:
    """A disk on which no file can be made while it is full."""

    def __init__(self) -> None:
        self.full = False
        self._create = Disk.create

    def __get__(self, disk: Disk, kind: type[Disk]) -> Callable[[Path], int]:
        return partial(self._made, disk)

    def _made(self, disk: Disk, file: Path) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._create(disk, file)


async def _to_the_end_of_a_full_disk(folder: Path) -> None:
    disk = FullDisk()
    async with kept(folder) as made:
        made.segment = 64 * 1024
        with patch.object(Disk, "create", disk):
            async with served(made) as one:
                await _played(one, disk)
                disk.full = True
                playing = asyncio.create_task(_playing(one))
                await until(lambda: one.table.shown.stopped != "", 3600)
                made.shoe.request(Plug(connected=False))
                await until(lambda: one.table.table.unrecorded.pending, 60)
                await stopped(playing)
    # It was full at the end too, and the record is closed all the same.
    assert [record.kind for record in made.records()][-2:] == ["closed", "checkpoint"]
    dropped = one.data("link", "not_recorded")[-1]
    assert dropped["count"] == one.table.table.unrecorded.total - sum(
        data["count"] for data in one.data("link", "not_recorded")[:-1]
    )


async def _playing(one: Served) -> None:
    """The robot plays on whenever the table works."""
    while True:
        with suppress(TableStopped):
            await one.to(lambda s: False)


async def _checked_often(monitor: SpaceMonitor) -> None:
    """A simulated segment is full after seconds, not after hours."""
    while True:
        await monitor.check()
        await asyncio.sleep(0.05)


async def _played(one: Served, disk: FullDisk) -> None:
    """It is announced, stops at the end of the segment, and goes on when there is room."""
    table, log = one.table, one.table.log
    monitor = SpaceMonitor(table, log.room, log.spares.retry, table.parts.game.seats)
    running = asyncio.create_task(_checked_often(monitor))
    disk.full = True
    playing = asyncio.create_task(_playing(one))
    await until(lambda: table.space.problem == WHY, 3600)
    assert table.shown.stopped == ""  # play goes on
    await until(lambda: table.shown.stopped != "", 3600)
    assert one.data("fault", "disk_full")
    assert "nothing is lost" in table.shown.stopped
    assert "no room for the next segment" in table.shown.stopped
    before = (one.state, log.where)
    for _ in range(100):
        await asyncio.sleep(0.1)
        assert table.shown.stopped
        await raised(TableStopped, table.act({"type": "FloorCalled"}, DEALER))
    assert (one.state, log.where) == before  # neither a device nor a person has changed it
    disk.full = False
    await until(lambda: table.shown.stopped == "", 60)
    await until(lambda: table.space == SPACE_LEFT, 60)
    await until(lambda: {"text": ENDED} in one.data("note"), 60)
    await stopped(running)
    rounds = one.state.round
    await until(lambda: one.state.round > rounds + 1, 3600)  # the robot has waited
    await stopped(playing)


def test_play_through_the_end_of_a_full_disk(tmp_path: Path) -> None:
    run(_to_the_end_of_a_full_disk(tmp_path))
