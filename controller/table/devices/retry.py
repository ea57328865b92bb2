"""What has failed to be kept is kept again once it can be: the record is tried while it has no
room, and devices whose records were dropped begin anew from where it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from controller.table.loop import TableLoop
from drivers.session import Keeper, NotKept

RETRY: Final = 1.0
"""Seconds until the record is tried again."""
PAUSE_MOST: Final = 30.0
"""Seconds between two tries of a device whose records cannot be kept."""

_log: Final = structlog.get_logger("table.mending")


class Mendable(Protocol):
    """A supervisor, as far as it keeps."""

    @property
    def failure(self) -> Exception | None: ...
    def mended(self, keeper: Keeper) -> None: ...


class Mending:
    """One table's."""

    def __init__(self, table: TableLoop) -> None:
        self._table = table
        self._kept: list[tuple[Mendable, Keeper]] = []
        self._failed = asyncio.Event()

    def watch(self, kept: Sequence[tuple[Mendable, Keeper]]) -> None:
        self._kept = list(kept)

    def failed(self) -> None:
        """Something could not be kept."""
        self._failed.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        pause = RETRY
        while True:
            await self._failed.wait()
            self._failed.clear()
            while self._anything():
                await asyncio.sleep(pause)
                stopped = self._table.stopped is not None
                if stopped and not await self._room():
                    continue
                if self._table.waits > RETRY:
                    continue  # it stalls: asked in vain, a device would be asked later each time
                self._begin_anew()
                pause = min(2 * pause, PAUSE_MOST)
            pause = RETRY

    def _anything(self) -> bool:
        if self._table.stopped is not None:
            return self._table.can_resume
        return any(one.failure is not None for one, _ in self._kept)

    async def _room(self) -> bool:
        text = f"recorded again; nothing could be recorded since: {self._table.stopped}"
        return await self._table.try_again(text)

    def _begin_anew(self) -> None:
        for supervisor, keeper in self._kept:
            if supervisor.failure is None:
                continue
            try:
                supervisor.mended(keeper)
            except NotKept as problem:
                _log.info("not mended yet", why=str(problem))
