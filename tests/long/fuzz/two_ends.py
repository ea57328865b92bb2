"""The two ends of a world: a shoe on a power switch, and the disk of a host that may be killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from firmware_protocol.device import (
    CannotDo,
    ControlRequest,
    Device,
    Moment,
    PowerCut,
    create_identity,
    pair_directly,
)
from firmware_protocol.host import (
    NO_CURSOR,
    HostLink,
    RecordCursor,
)
from firmware_protocol.host.commands import MAX_COMMANDS
from firmware_protocol.host.exchange import MAX_OUT
from firmware_protocol.host.records import RECENT
from firmware_protocol.messages import (
    MAX_ENCODED,
    REKEY_FRAMES,
    SESSION_LIFE_S,
    WINDOW,
    DeviceClass,
)
from firmware_protocol.tablelink import NO_CHAIN, EventRecord
from hil.devices import SimulatedShoe
from hil.faults import faulty_device


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

    def adopts(self, first: int) -> None:
        """A ring was adopted from this record on, or from a later one if that is overwritten."""
        self.coming = Part(0, first, [])

    def resumed(self, begins: RecordCursor, oldest: int) -> None:
        if self.coming is not None:
            first = max(self.coming.first, oldest)
            self.coming = Part(begins.epoch, begins.seq + 1, [])
            if self.coming.first != first:
                raise Broken(f"adopted from {self.coming.first} and not from {first}")
        elif self.kept is None:
            raise Broken("resumed, and nobody has adopted the ring")

    def arrived(self, record: EventRecord, committed: Collection[bytes]) -> None:
        """Check that it is the next record, was committed, and follows the one before."""
        part = self.coming or self.kept
        if part is None:
            raise Broken("a record arrived before anything was adopted")
        before = next(reversed(self.inbox or part.records), None)
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


def bounded(link: HostLink) -> None:
    """Check that no buffer of a link exceeds its limit."""
    for what, size, most in (
        ("records", link.records.waiting, WINDOW),
        ("chains", len(link.records.recent), RECENT),
        ("commands", len(link.commands), MAX_COMMANDS),
        ("bytes out", len(link.output.data), MAX_OUT),
        ("bytes in", link.deframer.buffered, MAX_ENCODED),
        ("former sessions", len(link.former), 4),
        ("events", len(link.output.events), 0),
    ):
        if size > most:
            raise Broken(f"{size} {what} are held, and {most} is the bound")


SERIAL: Final = "SH-0001"


class Terms(Struct, frozen=True):
    """What stays the same in a world."""

    rekey_frames: int = REKEY_FRAMES
    session_life_us: int = SESSION_LIFE_S * 1_000_000
    gate: bool = True
    tampered: bool = False
    """Someone will be at the ring: the link may hold."""
    breaks: frozenset[str] = frozenset()
    """What the device does wrong, by the names of hil.faults.catalogue."""


class Powered:
    """Only the folder of the device outlasts a power cut."""

    def __init__(
        self, folder: Path, random: Random, terms: Terms, host: bytes, counts: Counter[str]
    ) -> None:
        self._folder = folder
        self._random = random
        self._terms = terms
        self._counts = counts
        own = create_identity(folder, DeviceClass.SHOE, SERIAL, rng=random.randbytes)
        pair_directly(folder, host)
        self.key = own.public
        self.device: Device | None = None
        self.committed: set[bytes] = set()
        """Every record that it ever committed."""
        self.on_at: int | None = None
        """When power comes back."""
        self.frozen_until = 0
        self._seen = (0, 0, b"")  # epoch, head and last record of the ring, when it was looked at
        self._out = bytearray()

    def on(self, now: int) -> None:
        self.on_at = None
        if self.device is None:
            self.device = faulty_device(
                self._folder,
                SimulatedShoe(gate=self._terms.gate, gap_ms=5),
                now=now,
                breaks=set(self._terms.breaks),
                sync=False,
                random=self._random.randbytes,
            )
            self._look()

    def off(self, back_at: int) -> None:
        if self.device is not None:
            self._look()
            self._counts["power lost"] += 1
            self.device = None
            self.on_at = back_at

    def cut_at(self, moment: Moment) -> None:
        """Power goes at the next such moment."""
        if self.device is not None:
            self.device.cut_at(moment)
            self._counts[f"cut {moment}"] += 1

    def freeze(self, until: int) -> None:
        """The firmware hangs for a while."""
        self._counts["frozen"] += 1
        self.frozen_until = until

    def hear(self, data: bytes, now: int) -> None:
        """Bytes, or none: what is due happens too."""
        if self.device is not None:
            try:
                if data:
                    self.device.receive(data, now)
                else:
                    self.device.wake(now)
            except PowerCut:
                self._lost(now)
            else:
                self._look()

    def hand(self, hand: ControlRequest, now: int) -> bool:
        """Send a control request. Returns False if it is impossible now."""
        self.hear(b"", now)  # what is due comes first, and is noted
        if self.device is None:
            return False
        try:
            self.device.request(hand, now)
        except CannotDo:
            self._counts["cannot do"] += 1
            return False
        except PowerCut:
            self._lost(now)
            return False
        self._look()
        return True

    def take(self) -> bytes:
        """Bytes for the host, also those that left just before the power went."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def due(self) -> int | None:
        due = None if self.device is None else self.device.due()
        return due if due is None else max(due, self.frozen_until)

    def _lost(self, now: int) -> None:
        self.off(now + self._random.randrange(300_000))

    def _look(self) -> None:
        """What it has said and committed."""
        assert self.device is not None
        self._out += self.device.take()
        ring = self.device.ring
        epoch, head, last = self._seen
        if head and (epoch != ring.epoch or not ring.holds(head) or ring.record(head) != last):
            if not self._terms.tampered:
                raise Broken(f"the device has lost or changed record {head}")
            head = ring.oldest - 1
        for seq in range(head + 1, ring.head + 1):
            self.committed.add(ring.record(seq))
        self._seen = ring.epoch, ring.head, ring.record(ring.head) if ring.head else b""
