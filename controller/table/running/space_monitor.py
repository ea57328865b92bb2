"""Monitors whether the record has room for further play; recorded and shown hours ahead.

The log makes each segment while the one before it fills. If it cannot, the disk is full, and what
is left of the current segment is the play that is left.

    monitor = SpaceMonitor(running, seats=7)
    task = asyncio.create_task(monitor.run())
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import structlog
from msgspec.structs import asdict

from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.audit.format.table_entries import DISK_FULL, DiskFullDetail
from controller.audit.log import RecordRoom
from controller.table.loop import InputRejected, QueueFull, RequestResult, TableStopped
from controller.table.memory import SPACE_LEFT, SpaceStatus

CHECK_INTERVAL: Final = 10.0
"""Seconds between two checks; each retries a segment that could not be made."""
PACE_WINDOW: Final = 3600.0
"""Seconds of recent play from which the pace is measured."""
MIN_WINDOW: Final = 600.0
"""Seconds before which a measured pace is too uncertain."""
STEP_MINUTES: Final = 10
"""Steps of the announced time, so that a display does not change at each check."""
ENDED: Final = "the next segment of the record can be made again"

RECORD_BYTES: Final = 700
"""Approximate size of a record entry with its frame and its part of the index."""
ROUND_RECORDS: Final = 12
SEAT_RECORDS: Final = 13
"""Approximate number of entries of a round, and of each seat in it."""
ROUNDS_AN_HOUR: Final = 420
"""Divided by players plus dealer: about 210 with one player, 52 with seven."""

_log: Final = structlog.get_logger("table.space")


def bytes_an_hour(seats: int) -> int:
    """Bytes per hour of a table with the busiest number of players."""
    hourly = (
        ROUNDS_AN_HOUR * (ROUND_RECORDS + SEAT_RECORDS * players) // (players + 1)
        for players in range(1, seats + 1)
    )
    return max(hourly) * RECORD_BYTES


class RecordingTable(Protocol):
    """The part of a running table that the monitor uses."""

    def set_space(self, space: SpaceStatus) -> None: ...
    async def record(self, entry: RecordEntry) -> RequestResult: ...


class SpaceMonitor:
    """The monitor of one table."""

    def __init__(
        self,
        table: RecordingTable,
        room: Callable[[], RecordRoom],
        retry: Callable[[], None],
        seats: int,
    ) -> None:
        """`room` returns the room that is left, `retry` tries to make the next segment. Neither
        may block."""
        self._table = table
        self._room = room
        self._retry = retry
        self._busiest = bytes_an_hour(seats)
        self._samples: deque[tuple[float, int]] = deque()
        """Times, and bytes of the record at these times."""
        self._recorded = ""
        """The problem that the record contains; empty without one."""

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(CHECK_INTERVAL)

    async def check(self) -> None:
        """Check once, and record and show changes. What cannot be recorded is retried."""
        room = self._room()
        minutes = self._minutes(room)
        status = SpaceStatus(room.problem, minutes) if room.problem else SPACE_LEFT
        if room.problem:
            self._retry()
        self._table.set_space(status)
        if room.problem == self._recorded:
            return
        entry = RecordEntry("note", CONTROLLER, {"text": ENDED})
        if room.problem:
            detail = DiskFullDetail(room.problem, room.left, minutes)
            data = {"what": DISK_FULL, "detail": asdict(detail)}
            entry = RecordEntry("fault", CONTROLLER, data)
        try:
            await self._table.record(entry)
        except (TableStopped, QueueFull, InputRejected) as problem:
            _log.info("not recorded yet", what=DISK_FULL, why=str(problem))
            return
        self._recorded = room.problem
        if room.problem:
            _log.error(DISK_FULL, why=room.problem, left=room.left, minutes=minutes)
        else:
            _log.info(ENDED)

    def _minutes(self, room: RecordRoom) -> int:
        """Minutes of play for which the room is enough."""
        pace = self._pace(asyncio.get_running_loop().time(), room.written)
        minutes = room.left * 60 // pace
        return minutes - minutes % STEP_MINUTES

    def _pace(self, now: float, written: int) -> int:
        """Bytes an hour: those of the busiest play, or more if the last hour had more."""
        self._samples.append((now, written))
        while now - self._samples[0][0] > PACE_WINDOW:
            self._samples.popleft()
        since, before = self._samples[0]
        if now - since < MIN_WINDOW:
            return self._busiest
        return max(self._busiest, int((written - before) / (now - since) * 3600))
