"""Counts of the entries that the table's queue or its record did not accept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.audit.format.table_entries import NOT_RECORDED, UnrecordedData

MAX_DELAY: Final = 10.0
"""Seconds after which the counts are recorded although the queue never becomes empty."""
MAX_NAMED: Final = 32
"""Limit of devices that are counted separately; a table has fewer."""

_log: Final = structlog.get_logger("table")


class UnrecordedEntries:
    """The entries that were not recorded, as counts. Event loop only."""

    def __init__(self, utc: Callable[[], int]) -> None:
        """`utc` returns microseconds since 1970."""
        self._utc = utc
        self.total = 0
        """Entries since the start that were not recorded."""
        self.pending = False
        """Whether there are counts that are not recorded."""
        self._devices: Counter[str] = Counter()
        self._others = self._first = self._last = 0
        self._deadline = 0.0

    def add(self, entry: RecordEntry) -> None:
        """Count an entry that was not recorded."""
        now = self._utc()
        if not self.pending:
            _log.warning("not recorded: the table is busy or stopped", kind=entry.kind)
            self._first = now
            self._deadline = asyncio.get_running_loop().time() + MAX_DELAY
        self._last = now
        self.total += 1
        if entry.kind == "link":
            serial = str(entry.data.get("device", ""))
            known = serial in self._devices or len(self._devices) < MAX_NAMED
            self._devices[serial if known else ""] += 1
        else:
            self._others += 1
        self.pending = True

    def due(self, *, idle: bool) -> bool:
        """Whether the pending counts are to be recorded now. `idle`: no request waits. Each entry
        with counts follows an empty queue or MAX_DELAY: so they do not add to the load."""
        return idle or asyncio.get_running_loop().time() >= self._deadline

    def entry(self, number: int) -> RecordEntry:
        """The entry with the counts so far, in round `number`. Recorded also on a full disk."""
        devices = dict(sorted(self._devices.items()))
        count = self._devices.total()
        data = UnrecordedData(NOT_RECORDED, count, self._others, self._first, self._last, devices)
        return RecordEntry("link", CONTROLLER, data, number, reserved=True)

    def recorded(self, data: UnrecordedData) -> None:
        """These counts are durable: later ones remain."""
        self._devices -= Counter(data.devices)
        self._others -= data.others
        self.pending = bool(self._devices or self._others)
        self._first = data.last  # those that remain were counted during the append
        self._deadline = asyncio.get_running_loop().time() + MAX_DELAY
        _log.warning("entries were not recorded", count=data.count, others=data.others)
