"""From a record that has come to an event that someone may use: kept first, acknowledged then, and
only then handed out.

What cannot be kept is not handed out, and neither is anything after it. Nobody guesses: until the
keeper is mended, what it holds is not known.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from drivers.keeper import Keeper
from firmware_protocol.plaintext import EventRecord

MOST: Final = 16
"""Records that wait to be kept. A link hands out no more than its window, which is half of it."""

KEEP_WAIT: Final = 10.0
"""Seconds that keeping may take. A disk may stall; one that stalls longer keeps nothing."""


class Come(Struct, frozen=True):
    """A record, and when it came."""

    record: EventRecord
    at: int


class Keeping:
    """The records of one device on their way to the keeper and from there to the table."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        kept: Callable[[int], None],
        deliver: Callable[[Come], Awaitable[None]],
        failed: Callable[[OSError], None],
    ) -> None:
        self.keeper = keeper
        self.failure: OSError | None = None
        """Why nothing is kept any more."""
        self._kept = kept
        self._deliver = deliver
        self._failed = failed
        self._waiting: deque[Come] = deque()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    def come(self, record: EventRecord, at: int) -> None:
        """A record has come. After a failure it is dropped: it was not acknowledged, and comes
        again."""
        if self.failure is not None:
            return
        if len(self._waiting) >= MOST:
            raise OverflowError(f"{MOST} records wait to be kept already")
        self._waiting.append(Come(record, at))
        self._some.set()
        self._none.clear()

    async def settled(self) -> None:
        """Returns when no record waits to be kept."""
        await self._none.wait()

    def mended(self, keeper: Keeper) -> None:
        """From here on it can be kept again."""
        self.keeper = keeper
        self.failure = None

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._some.wait()
            waiting = self._waiting
            batch = tuple(waiting)
            try:
                async with asyncio.timeout(KEEP_WAIT):
                    await self.keeper.keep([one.record for one in batch])
            except OSError as failure:  # TimeoutError is one: whoever takes too long has failed
                self.fail(failure)
            if waiting is not self._waiting:
                continue  # it has failed, here or at an adoption: none of these counts
            for _ in batch:
                waiting.popleft()
            self._settle()
            self._kept(batch[-1].record.seq)
            for one in batch:
                await self._deliver(one)

    def fail(self, failure: OSError) -> None:
        """Something could not be kept: nothing is from now on."""
        if self.failure is None:
            self.failure = failure
            self._waiting = deque()
            self._settle()
            self._failed(failure)

    def _settle(self) -> None:
        if not self._waiting:
            self._some.clear()
            self._none.set()
