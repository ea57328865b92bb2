"""The disk of a host that may be killed at any moment, and the invariants of its records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from firmware_protocol.host import (
    NO_CURSOR,
    HostLink,
    RecordCursor,
)
from firmware_protocol.host.commands import MAX_COMMANDS
from firmware_protocol.host.exchange import MAX_OUT
from firmware_protocol.host.records import RECENT
from firmware_protocol.messages import MAX_ENCODED, WINDOW
from firmware_protocol.tablelink import NO_CHAIN, EventRecord


class Broken(AssertionError):
    """An invariant is violated."""


class Part(Struct):
    """Records of one ring without a gap, from where two people adopted it."""

    epoch: int
    first: int
    records: list[EventRecord]

    @property
    def last(self) -> int:
        return self.first + len(self.records) - 1

    @property
    def cursor(self) -> RecordCursor:
        chain = self.records[-1].chain if self.records else NO_CHAIN
        return RecordCursor(self.epoch, self.last, chain)


class Disk:
    """Written records persist. Records in memory are lost when the host is killed."""

    def __init__(self) -> None:
        self.kept: Part | None = None
        """On the disk."""
        self.coming: Part | None = None
        """Adopted, and nothing of it on the disk yet. In memory."""
        self.inbox: list[EventRecord] = []
        """Arrived, and not on the disk yet. In memory."""
        self.untold = 0
        """Number of records on the disk that the link was not told of."""

    @property
    def cursor(self) -> RecordCursor:
        return NO_CURSOR if self.kept is None else self.kept.cursor

    @property
    def recent(self) -> dict[int, bytes]:
        """The last chains."""
        records = [] if self.kept is None else self.kept.records[-RECENT:]
        return {record.seq: record.chain for record in records}

    def killed(self) -> None:
        self.inbox.clear()
        self.coming = None
        self.untold = 0

    def adopts(self) -> None:
        """A ring was adopted; RingResumed names its start."""
        self.coming = Part(0, 0, [])

    def resumed(self, begins: RecordCursor, oldest: int) -> None:
        if self.coming is not None:
            self.coming = Part(begins.epoch, begins.seq + 1, [])
            if self.coming.first != oldest:
                raise Broken(f"adopted from {self.coming.first} and not from {oldest}")
        elif self.kept is None:
            raise Broken("resumed, and nobody has adopted the ring")

    def arrived(self, record: EventRecord, committed: Collection[bytes]) -> None:
        """Check that it is the next record, was committed, and follows the one before."""
        part = self.coming or self.kept
        if part is None:
            raise Broken("a record arrived before anything was adopted")
        before = self.inbox[-1] if self.inbox else (part.records[-1] if part.records else None)
        wanted = part.first if before is None else before.seq + 1
        if (record.epoch, record.seq) != (part.epoch, wanted):
            raise Broken(f"record {record.seq} arrived instead of {wanted}")
        if record.encode() not in committed:
            raise Broken(f"record {record.seq} is none that was committed")
        if before is not None and not record.follows(before.chain):
            raise Broken(f"record {record.seq} does not follow the one before")
        self.inbox.append(record)

    def write(self, count: int = WINDOW) -> None:
        """Write records to the disk; the link is not told yet."""
        for record in self.inbox[:count]:
            if self.coming is not None:
                self.kept, self.coming = self.coming, None
            if self.kept is None:
                raise Broken("a record is to be kept before anything was adopted")
            self.kept.records.append(record)
            self.untold += 1
        del self.inbox[:count]


_BOUNDS: Final = {
    "records": WINDOW,
    "chains": RECENT,
    "commands": MAX_COMMANDS,
    "bytes out": MAX_OUT,
    "bytes in": MAX_ENCODED,
    "former sessions": 4,
    "events": 0,
}


def bounded(link: HostLink) -> None:
    """Check that no buffer of a link exceeds its limit."""
    sizes = (
        link.records.waiting,
        len(link.records.recent),
        len(link.commands),
        len(link.output.data),
        link.deframer.buffered,
        len(link.former),
        len(link.output.events),
    )
    for size, (what, most) in zip(sizes, _BOUNDS.items(), strict=True):
        if size > most:
            raise Broken(f"{size} {what} are held, and {most} is the bound")
