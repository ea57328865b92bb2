"""The record as the keeper of the devices' logs: a device's event and its cursor are one write.

What a device tells is decided and recorded by the table before its supervisor acknowledges it. So
what supervisors hand out afterwards has happened already; it serves the drivers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.procedure.model.events import Device
from controller.table.intake import DeviceSource
from controller.table.loop.loop import TableLoop
from drivers.devices import Driver, origin_of
from drivers.session import RECENT, Adoption, monotonic_us
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink.plaintext import EventRecord

ADOPTED: Final = "adopted"


class PositionUnknown(LookupError):
    """How far the record goes is not known now: something is on its way to the disk."""


class StoredPosition(Struct, frozen=True):
    """How far the record of a device went when it was opened."""

    cursor: RecordCursor = NO_CURSOR
    recent: Mapping[int, bytes] = MappingProxyType({})


class DeviceRecordStore:
    """One device's part of the record."""

    def __init__(
        self,
        table: TableLoop,
        device: Device,
        serial: str,
        stood: StoredPosition,
        *,
        clock: Callable[[], int] = monotonic_us,
    ) -> None:
        self.device: Device = device
        self.serial = serial
        self._table = table
        self._clock = clock
        self._driver: Driver | None = None
        self._cursor = stood.cursor
        self._recent = dict(stood.recent)
        self._adopted: Adoption | None = None
        """The last thing that was kept, if it was one."""
        self._in_hand = 0
        """Records that the table has and of which nobody knows yet whether they are on the disk."""

    def read_by(self, driver: Driver) -> None:
        """The driver that knows the device's words."""
        self._driver = driver

    # --- what a supervisor asks -----------------------------------------------------------

    def cursor(self) -> RecordCursor:
        self._known()
        return self._cursor

    def recent(self) -> Mapping[int, bytes]:
        self._known()
        return MappingProxyType(self._recent)

    async def keep(self, records: Sequence[EventRecord]) -> None:
        """Each in its turn: what one is may depend on the one before it. Stopped; ValueError for
        one that does not go on from where the record stands, which is not taken."""
        driver = self._driver
        if driver is None:
            raise ValueError(f"nobody reads the words of {self.serial}")
        for record in records:
            self._check(record)
            origin = origin_of(record, self.serial, self._clock())
            told = driver.read(origin, record.event)
            source = DeviceSource(self.device, self._place(record))

            def settled(recorded: bool, one: EventRecord = record) -> None:
                self._in_hand -= 1
                if recorded:
                    self._learn(one)

            self._in_hand += 1
            await self._table.heard(told, source, settled)

    async def adopt(self, adoption: Adoption) -> None:
        await self._table.record(_entry(self.serial, adoption))
        self._adopted = adoption
        self._recent = {}
        self._cursor = adoption.cursor or self._cursor

    @property
    def seq(self) -> int:
        """Of its last record that is on the disk."""
        return self._cursor.seq

    # --- where it stands ------------------------------------------------------------------

    def _known(self) -> None:
        if self._in_hand:
            raise PositionUnknown(f"a record of {self.serial} is on its way to the disk")

    def _check(self, record: EventRecord) -> None:
        """A cursor goes on by one, in one ring; anywhere else only once that was adopted."""
        self._known()
        stands, adopted = self._cursor, self._adopted
        if adopted is not None and record.epoch == adopted.epoch and record.seq >= adopted.next:
            return
        if not stands.epoch and adopted is None:
            return
        if (record.epoch, record.seq) != (stands.epoch, stands.seq + 1):
            raise ValueError(f"record {record.seq} of {record.epoch} is not the one after {stands}")

    def _learn(self, record: EventRecord) -> None:
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


def _entry(serial: str, adoption: Adoption) -> RecordEntry:
    """What is recorded of an adoption. Without it no cursor of a device ever goes back."""
    stands = adoption.cursor
    cursor = None
    if stands is not None:
        cursor = DeviceCursor(serial, stands.epoch, stands.seq, stands.chain.hex())
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
