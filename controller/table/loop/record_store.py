"""The audit record as the store of the devices' records: event and cursor in one write.

The table decides and records an event before its supervisor acknowledges it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.procedure.model.events import Device
from controller.table.intake import DeviceSource
from controller.table.loop.loop import TableLoop
from drivers.devices import DeviceEvent
from drivers.session import RECENT, AdoptedRing
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink.plaintext import EventRecord

ADOPTED: Final = "adopted"


class PositionUnknown(LookupError):
    """The stored position is unknown while an append is running."""


class StoredPosition(Struct, frozen=True):
    """The position of a device's log in the record when it was opened."""

    cursor: RecordCursor = NO_CURSOR
    recent: Mapping[int, bytes] = MappingProxyType({})


class DeviceRecordStore:
    """The record store of one device."""

    def __init__(
        self, table: TableLoop, device: Device, serial: str, stood: StoredPosition
    ) -> None:
        self.device: Device = device
        self.serial = serial
        self._table = table
        self._cursor = stood.cursor
        self._recent = dict(stood.recent)
        self._adopted: AdoptedRing | None = None
        """The last adoption, if no record was stored since."""
        self._in_hand = 0
        """Number of records in the table's queue or in a running append."""

    # --- interface for the supervisor -----------------------------------------------------

    def cursor(self) -> RecordCursor:
        self._check_settled()
        return self._cursor

    def recent(self) -> Mapping[int, bytes]:
        self._check_settled()
        return MappingProxyType(self._recent)

    def store(self, record: EventRecord, event: DeviceEvent) -> Awaitable[object]:
        """Raises TableStopped, and ValueError for a record that does not follow the cursor."""
        self._check(record)
        source = DeviceSource(self.device, self._place(record))
        self._in_hand += 1
        return self._table.device_event(event, source, partial(self._settled, record))

    async def adopt(self, adoption: AdoptedRing) -> None:
        await self._table.record(_entry(self.serial, adoption))
        self._adopted = adoption
        self._recent = {}
        self._cursor = adoption.cursor or self._cursor

    @property
    def seq(self) -> int:
        """Sequence number of the last durable record."""
        return self._cursor.seq

    # --- position -------------------------------------------------------------------------

    def _check_settled(self) -> None:
        if self._in_hand:
            raise PositionUnknown(f"a record of {self.serial} is being appended")

    def _check(self, record: EventRecord) -> None:
        """A record must follow the cursor by one in the same epoch, or start at an adopted one."""
        self._check_settled()
        cursor, adopted = self._cursor, self._adopted
        if adopted is not None and record.epoch == adopted.epoch and record.seq >= adopted.next:
            return
        if not cursor.epoch and adopted is None:
            return
        if (record.epoch, record.seq) != (cursor.epoch, cursor.seq + 1):
            raise ValueError(f"record {record.seq} of {record.epoch} does not follow {cursor}")

    def _settled(self, record: EventRecord, recorded: bool) -> None:
        self._in_hand -= 1
        if not recorded:
            return
        if record.epoch != self._cursor.epoch:
            self._recent = {}
        self._adopted = None
        self._cursor = RecordCursor(record.epoch, record.seq, record.chain)
        self._recent[record.seq] = record.chain
        self._recent.pop(record.seq - RECENT, None)

    def _place(self, record: EventRecord) -> DeviceCursor:
        return DeviceCursor(
            self.serial, record.epoch, record.seq, record.chain.hex(), record.boot, record.t_us
        )


def _entry(serial: str, adoption: AdoptedRing) -> RecordEntry:
    """The record entry of an adoption. Only an adoption moves a device's cursor back."""
    at, cursor = adoption.cursor, None
    if at is not None:
        cursor = DeviceCursor(serial, at.epoch, at.seq, at.chain.hex())
    data = {
        "what": ADOPTED,
        "device": serial,
        "verdict": adoption.verdict.name.lower(),
        "epoch": adoption.epoch,
        "oldest": adoption.oldest,
        "head": adoption.head,
        "next": adoption.next,
        "two": list(adoption.by),
    }
    return RecordEntry("link", RecordActor("floor", adoption.by[0]), data, cursor=cursor, sign=True)
