"""Interface of the store of a device's records: at a running table, the audit record."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from drivers.devices import DeviceEvent
from firmware_protocol.host import RecordCursor, RingHeld
from firmware_protocol.messages import REREAD_DEPTH
from firmware_protocol.tablelink import NO_CHAIN, EventRecord

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
        return self.held.head + 1 if self.skip else self.held.oldest

    @property
    def cursor(self) -> RecordCursor | None:
        """The position from now on; None if the chain before `next` is not known, so that the
        position does not change until that record has arrived."""
        held = self.held
        if self.next == held.head + 1:
            return RecordCursor(held.epoch, held.head, held.chain)
        return RecordCursor(held.epoch, 0, NO_CHAIN) if self.next == 1 else None


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
