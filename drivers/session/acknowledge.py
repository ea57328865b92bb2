"""Stores the records of a device before they are acknowledged, and the store's interface."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from drivers.devices import DeviceEvent, Driver, Origin
from firmware_protocol.host import ReceivedRecords, RecordCursor, RingHeld
from firmware_protocol.messages import REREAD_DEPTH
from firmware_protocol.tablelink import EventRecord

RECENT: Final = 2 * REREAD_DEPTH
"""Chains of so many last records are stored, to distinguish a known record from a forged one."""


class AdoptedRing(Struct, frozen=True):
    """A device's ring that two people accepted although it does not continue the record."""

    held: RingHeld
    """Its state at that time."""
    by: tuple[str, str]
    skip: bool = False
    """Its records up to its head are not wanted."""

    @property
    def next(self) -> int:
        """The first record that is wanted of it."""
        return self.held.head + 1 if self.skip else self.held.next

    @property
    def cursor(self) -> RecordCursor | None:
        """The position from now on; None if the chain before `next` is not known, so that the
        position does not change until that record has arrived."""
        chain = self.held.chain_before(self.next)
        return None if chain is None else RecordCursor(self.held.epoch, self.next - 1, chain)


class RecordStore(Protocol):
    """Stores one device's records, one call at a time.

    If store() or adopt() raises anything or is cancelled, it is unknown what is stored until
    cursor() returns it. A store that does not know it raises, and no session is started."""

    def cursor(self) -> RecordCursor:
        """The last stored record, or NO_CURSOR. Does not block."""

    def recent(self) -> Mapping[int, bytes]:
        """Chains of the last records of the cursor's ring, by sequence number. Does not block."""

    def store(self, record: EventRecord, event: DeviceEvent) -> Awaitable[object]:
        """Store a record and the new cursor in one transaction. `event` is the record in the
        driver's types. Durable when the awaitable has finished."""

    def adopt(self, ring: AdoptedRing) -> Awaitable[object]:
        """Store that the next record may be any of that ring, and who accepted it. Durable.

        Until a record of it has arrived, the record after cursor() is accepted too: the adopted
        ring may be gone before the adoption took effect."""


MAX_WAITING: Final = 16
"""Records that wait to be stored. A link delivers no more than its window, which is half of it."""

STORE_TIMEOUT: Final = 10.0
"""Seconds to store one record. A disk may stall; one that stalls longer has failed."""
SETTLE_TIMEOUT: Final = 2 * STORE_TIMEOUT + 1
"""Seconds to store all records that have arrived."""


_T = TypeVar("_T")


class StoredRecord(Struct, frozen=True):
    """A record that is durable."""

    seq: int
    event: DeviceEvent


class StoreFailed(OSError):
    """A record or an adoption was not stored, or may not have been. `first` is the cause."""

    def __init__(self, first: Exception) -> None:
        super().__init__(text_of(first))
        self.first = first


class NothingHeld(Exception):
    """adopt() although no ring waits for two people, or no longer."""


def text_of(cause: Exception) -> str:
    """The cause as text for people: an OSError's own text is enough."""
    kind, text = type(cause).__name__, str(cause)
    return text if text and isinstance(cause, OSError) else f"{kind}: {text}".removesuffix(": ")


class Acknowledger:
    """Stores one device's records in order, one at a time."""

    def __init__(self, store: RecordStore, driver: Driver, serial: str) -> None:
        self._store = store
        self._driver = driver
        self._serial = serial
        self._queue: asyncio.Queue[tuple[EventRecord, int]] = asyncio.Queue(MAX_WAITING)
        self._lock = asyncio.Lock()
        """Held while the store works: on a record or on an adoption."""
        self._resets = 0

    def enqueue(self, record: EventRecord, at: int) -> None:
        """A record has arrived. Raises QueueFull if the link delivers more than it may."""
        self._queue.put_nowait((record, at))

    async def store_next(self) -> StoredRecord:
        """Wait for a record, and return it once it is durable: it may be acknowledged now.

        Raises StoreFailed. The result for a record that arrived before reset() is ignored."""
        while True:
            record, at = await self._queue.get()
            try:
                stored = await self._store_queued(record, at, self._resets)
            finally:
                self._queue.task_done()
            if stored is not None:
                return stored

    async def _store_queued(self, record: EventRecord, at: int, resets: int) -> StoredRecord | None:
        """None if reset() was called in between."""
        try:
            async with self._lock:
                if resets != self._resets:
                    return None
                stored = await _durable(lambda: self._store_one(record, at))
        except StoreFailed:
            if resets == self._resets:
                raise
            return None
        return stored if resets == self._resets else None

    async def _store_one(self, record: EventRecord, at: int) -> StoredRecord:
        origin = Origin(self._serial, record.epoch, record.seq, record.boot, record.t_us, at)
        event = self._driver.read(origin, record.event)
        await self._store.store(record, event)
        return StoredRecord(record.seq, event)

    async def adopt(self, ring: AdoptedRing) -> None:
        """Store an adoption; no record is stored at that time. Raises StoreFailed."""
        async with self._lock:
            await _durable(lambda: self._store.adopt(ring))

    async def settled(self) -> None:
        """Returns when all records that have arrived are durable. Raises StoreFailed on timeout."""
        try:
            async with asyncio.timeout(SETTLE_TIMEOUT):
                await self._queue.join()
                async with self._lock:
                    return
        except TimeoutError:
            late = TimeoutError(f"the records were not stored within {SETTLE_TIMEOUT:g} s")
            raise StoreFailed(late) from None

    def reset(self) -> None:
        """Drop the records that are not stored: they were not acknowledged and are sent again."""
        self._resets += 1
        while not self._queue.empty():
            self._queue.get_nowait()
            self._queue.task_done()

    def position(self) -> tuple[RecordCursor, Mapping[int, bytes]]:
        """The last stored record and the chains before it. Raises StoreFailed if not known."""
        try:
            cursor, recent = self._store.cursor(), dict(self._store.recent())
            ReceivedRecords(cursor, recent)  # A link starts with them: are they valid?
        except Exception as first:
            # As broad as in _durable().
            raise StoreFailed(first) from first
        return cursor, recent


async def _durable(start: Callable[[], Awaitable[_T]]) -> _T:
    """Returns the result of the store. Raises StoreFailed if it fails or takes too long."""
    limit = asyncio.timeout(STORE_TIMEOUT)
    try:
        async with limit:
            return await start()
    except asyncio.CancelledError as first:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # The waiting task is cancelled, not the store.
        raise StoreFailed(OSError("the store has given up")) from first
    except Exception as first:
        # Broad on purpose: after any error of a store, the record counts as not stored. The cause
        # is reported, and nothing is stored after it.
        late = TimeoutError(f"not stored within {STORE_TIMEOUT:g} s")
        raise StoreFailed(late if limit.expired() else first) from first
