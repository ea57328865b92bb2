"""From a record that has come to one that is safe: kept first, acknowledged then, and only then
handed out.

What cannot be kept is not handed out, and neither is anything after it. Nobody guesses: until the
keeper is mended, what it holds is not known.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from drivers.session.record_store import Adoption, Keeper
from firmware_protocol.host import ReceivedRecords, RecordCursor
from firmware_protocol.tablelink.plaintext import EventRecord

MOST: Final = 16
"""Records that wait to be kept. A link hands out no more than its window, which is half of it."""

KEEP_WAIT: Final = 10.0
"""Seconds that keeping may take. A disk may stall; one that stalls longer keeps nothing."""
SETTLE_WAIT: Final = 2 * KEEP_WAIT + 1
"""Seconds for what is being kept and what came meanwhile."""

_W = TypeVar("_W")


class Come(Struct, frozen=True):
    """A record, and when it came."""

    record: EventRecord
    at: int


class NotKept(OSError):
    """It is not kept, as far as anybody knows. `first` is the first cause."""

    def __init__(self, first: Exception) -> None:
        super().__init__(in_words(first))
        self.first = first


def in_words(first: Exception) -> str:
    """The cause, for people: that of an OSError speaks for itself."""
    kind, text = type(first).__name__, str(first)
    return text if text and isinstance(first, OSError) else f"{kind}: {text}".removesuffix(": ")


async def surely(ask: Callable[[_W], Awaitable[None]], what: _W) -> None:
    """Returns when the keeper has done this; NotKept when it has not in time."""
    limit = asyncio.timeout(KEEP_WAIT)
    try:
        async with limit:
            await ask(what)
    except asyncio.CancelledError as first:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # whoever waited gives up; else the keeper itself has been cancelled
        raise NotKept(OSError("the keeper has given up")) from first
    except Exception as first:
        # This broad, for once: keepers are others' work, and whatever one fails of, the record is
        # not kept. It goes no further than to be told as the cause, and nothing is kept after it.
        late = TimeoutError(f"it was not kept within {KEEP_WAIT:g} s")
        raise NotKept(late if limit.expired() else first) from first


def stands(keeper: Keeper) -> tuple[RecordCursor, Mapping[int, bytes]]:
    """Where the record ends and the chains before that, as the keeper says; NotKept if it does
    not."""
    try:
        cursor, recent = keeper.cursor(), dict(keeper.recent())
        ReceivedRecords(cursor, recent)  # which a link begins with
    except Exception as first:
        # As broad as in surely(), for the same reason.
        raise NotKept(first) from first
    return cursor, recent


class Keeping:
    """The records of one device on their way to the keeper. `room` says how many may be handed on,
    once they are kept and acknowledged."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        room: Callable[[], int],
        kept: Callable[[int], None],
        hand: Callable[[Come], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.keeper = keeper
        self.failure: Exception | None = None
        """Why nothing is kept any more: the first cause."""
        self.whole = asyncio.Event()
        """Set while nothing has failed."""
        self.whole.set()
        self._room = room
        self._kept = kept
        self._hand = hand
        self._failed = failed
        self._waiting: deque[Come] = deque()
        self._busy = False
        """The keeper is at work: one thing at a time, records or an adoption."""
        self._some = asyncio.Event()
        """Set while a record waits that can be kept now."""
        self._none = asyncio.Event()
        """Set while the keeper rests and no record can be kept now."""
        self._none.set()

    def come(self, record: EventRecord, at: int) -> None:
        """A record has come. After a failure it is dropped: it was not acknowledged, and comes
        again."""
        if self.failure is not None:
            return
        if len(self._waiting) >= MOST:
            raise OverflowError(f"{MOST} records wait to be kept already")
        self._waiting.append(Come(record, at))
        self.look()

    def look(self) -> None:
        """Records have come or gone, the keeper has ended its work, or there is room again."""
        if self._busy:
            return
        if self._waiting and self._room() > 0:
            self._none.clear()
            self._some.set()
        else:
            self._some.clear()
            self._none.set()

    async def settled(self) -> None:
        """Returns when the keeper rests. Records that there is no room for are dropped: they were
        not acknowledged, and whoever waited here has to let them come again."""
        try:
            async with asyncio.timeout(SETTLE_WAIT):
                while not self._none.is_set():
                    await self._none.wait()
        except TimeoutError:
            self.fail(TimeoutError(f"the keeper does not rest within {SETTLE_WAIT:g} s"))
        self.drop()

    def drop(self) -> None:
        """What waits comes again."""
        self._waiting.clear()
        self.look()

    async def adopt(self, adoption: Adoption) -> None:
        """Keep this, or NotKept: then nothing is kept from now on. To be called when settled() has
        returned; no record is kept meanwhile."""
        self.check()
        self._begin()
        try:
            await surely(self.keeper.adopt, adoption)
        except NotKept as problem:
            self.fail(problem.first)
            raise
        finally:
            self._busy = False
            self.look()
        self.check()

    def _begin(self) -> None:
        """The keeper is given something to do."""
        self._busy = True
        self._some.clear()
        self._none.clear()

    def check(self) -> None:
        """NotKept if nothing is kept any more."""
        if self.failure is not None:
            raise NotKept(self.failure) from self.failure

    def begins(self) -> tuple[RecordCursor, Mapping[int, bytes]]:
        """Where the record ends, for a new link. NotKept if that is not known: then nothing is
        kept from now on."""
        self.check()
        try:
            return stands(self.keeper)
        except NotKept as problem:
            self.fail(problem.first)
            raise

    def mended(self, keeper: Keeper) -> None:
        """From here on it can be kept again. NotKept, and nothing has changed, where this keeper
        does not say how far the record goes."""
        stands(keeper)
        self.keeper = keeper
        self.failure = None
        self.whole.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            while not self._some.is_set():
                await self._some.wait()
            waiting = self._waiting
            batch = tuple(islice(waiting, self._room()))
            self._begin()
            try:
                await surely(self.keeper.keep, [one.record for one in batch])
            except NotKept as problem:
                if waiting is self._waiting:  # else it had failed before, and may be mended by now
                    self.fail(problem.first)
            self._busy = False
            if waiting is self._waiting:
                for _ in batch:
                    waiting.popleft()
                self._kept(batch[-1].record.seq)
                for one in batch:
                    self._hand(one)
            # Else it has failed, here or beside it: none of these counts.
            self.look()

    def fail(self, first: Exception) -> None:
        """Something could not be kept: nothing is from now on."""
        if self.failure is None:
            self.failure = first
            self.whole.clear()
            self._waiting = deque()
            self.look()
            self._failed(first)
