"""Retries after records could not be stored: of the record while the disk is full, and of
devices whose records were dropped, which resume at the stored position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from controller.table.loop import TableLoop
from drivers.session import Backoff, StoreFailed

RETRY_FIRST: Final = 1.0
"""Seconds until the first retry."""
RETRY_MAX: Final = 30.0
"""Maximum seconds between two retries. The delay does not grow while the record itself cannot be
written."""

_log: Final = structlog.get_logger("table.mending")


class StoringDevice(Protocol):
    """The store failure of a supervisor."""

    @property
    def failure(self) -> Exception | None: ...
    def recovered(self) -> None: ...


class StoreRetry:
    """The retries of one table."""

    def __init__(self, table: TableLoop) -> None:
        self._table = table
        self._devices: list[StoringDevice] = []
        self._failed = asyncio.Event()

    def watch(self, devices: Sequence[StoringDevice]) -> None:
        self._devices = list(devices)

    def failed(self) -> None:
        """Something could not be stored."""
        self._failed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        backoff = Backoff(RETRY_FIRST, RETRY_MAX)
        delay = backoff.next_delay()
        while True:
            await self._failed.wait()
            self._failed.clear()
            while self._is_pending():
                await asyncio.sleep(delay)
                stopped = self._table.stopped is not None
                if stopped and not await self._try_record():
                    continue
                if self._table.waits > RETRY_FIRST:
                    continue  # it stalls: a device that fails now would wait longer each time
                self._recover()
                delay = backoff.next_delay()
            backoff.reset()
            delay = backoff.next_delay()

    def _is_pending(self) -> bool:
        if self._table.stopped is not None:
            return self._table.can_resume
        return any(device.failure is not None for device in self._devices)

    async def _try_record(self) -> bool:
        text = f"recorded again; nothing could be recorded since: {self._table.stopped}"
        return await self._table.try_again(text)

    def _recover(self) -> None:
        for device in self._devices:
            if device.failure is None:
                continue
            try:
                device.recovered()
            except StoreFailed as problem:
                _log.info("not mended yet", why=str(problem))
