"""Monitor of the table's event loop: how late it runs, and a record entry about its stalls.

A loop that is late did not run: the process was stopped, or the machine was busy. Devices end their
sessions then, and are not lost for it: the links resume them (`controller/table/devices/links.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog
from msgspec.structs import asdict

from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.audit.format.table_entries import HOST_STALLED, StalledData

TICK_INTERVAL: Final = 0.25
"""Seconds between two ticks of the loop."""
STALL: Final = 0.25
"""Delay of a tick in seconds from which on the loop has stood still."""
RECORDED: Final = 0.5
"""Delay from which on a stall is recorded: half of the time after which devices end a session."""
REPORT_INTERVAL: Final = 60.0
"""Minimum seconds between two entries. An entry has all stalls since the one before."""

_log: Final = structlog.get_logger("table.stalls")


class LoopMonitor:
    """Measures the delay of the event loop, and records its stalls. Event loop only."""

    def __init__(
        self, record: Callable[[RecordEntry], None], utc: Callable[[], int] = lambda: 0
    ) -> None:
        """`record` queues an entry. `utc` returns microseconds since 1970."""
        self.lag = 0.0
        """Delay of the last tick in seconds."""
        self._record = record
        self._utc = utc
        self._listeners: list[Callable[[float], None]] = []
        self._due: float | None = None
        self._processor = self._used = 0.0
        """Processor time of this thread at the last tick, and between the last two."""
        self._stalled_until = float("-inf")
        self._pending: StalledData | None = None
        """The stalls that are not recorded yet."""
        self._next_report = float("-inf")

    @property
    def late(self) -> float:
        """Seconds by which the next tick is late."""
        now = asyncio.get_running_loop().time()
        return 0.0 if self._due is None else max(0.0, now - self._due)

    @property
    def own_lag(self) -> float:
        """The larger delay of both ticks, as far as this thread was working. In the rest of it,
        the process was stopped or other programs were running."""
        used = time.thread_time() - self._processor
        return max(min(self.lag, self._used), min(self.late, used))

    @property
    def stalled_until(self) -> float:
        """When the last stall ended, as loop time; now if a tick is overdue. -inf: never."""
        return self._stalled_until if self.late < STALL else asyncio.get_running_loop().time()

    def add_listener(self, on_lag: Callable[[float], None]) -> None:
        """Register a callback for the delay of each tick."""
        self._listeners.append(on_lag)

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = self._due = loop.time() + TICK_INTERVAL
            self._processor = time.thread_time()
            await asyncio.sleep(TICK_INTERVAL)
            now = loop.time()
            self.lag = max(0.0, now - due)
            self._used = time.thread_time() - self._processor
            for on_lag in self._listeners:
                on_lag(self.lag)
            if self.lag >= STALL:
                self._stalled_until = now
            if self.lag >= RECORDED:
                self._count()
            if now >= self._next_report:
                self.report()

    def report(self) -> None:
        """Record the stalls that are not recorded yet."""
        if self._pending is not None:
            self._next_report = asyncio.get_running_loop().time() + REPORT_INTERVAL
            self._record(RecordEntry("link", CONTROLLER, asdict(self._pending)))
            self._pending = None

    def _count(self) -> None:
        lag, used = round(self.lag * 1000), round(self._used * 1000)
        _log.warning("the loop stood still", ms=lag, processor_ms=used)
        former = self._pending
        if former is None:
            since = self._utc() - 1000 * lag
            self._pending = StalledData(HOST_STALLED, 1, since, lag, lag, used)
        else:
            self._pending = StalledData(
                HOST_STALLED,
                former.count + 1,
                former.since,
                max(former.longest_ms, lag),
                former.total_ms + lag,
                former.processor_ms + used,
            )
