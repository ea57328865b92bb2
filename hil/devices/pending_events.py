"""Events that wait to be recorded: each exactly once, across power cuts and a full ring.

A mechanism stores its pending events before it records them, and removes them afterwards. After a
start, the events that the ring already holds are removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from firmware_protocol.device import CannotDo, CoreServices
from firmware_protocol.messages import EVENTS, REREAD_DEPTH, Event
from firmware_protocol.tablelink import EventRecord, decode_plaintext

MAX_PENDING: Final = 64
"""Events that a mechanism stores while the ring is full."""
POLL_US: Final = 100_000
"""Interval of the checks whether the ring has space again."""


class PendingEvents(Struct):
    events: list[tuple[int, bytes]] = []
    """Id and encoded fields of each."""
    epoch: int = 0
    head: int = 0
    """The last record of that ring when the first event was added; the event follows it."""

    @property
    def pending(self) -> PendingEvents:
        """Itself, as the whole state of a mechanism that stores nothing else."""
        return self

    def has_capacity(self, count: int) -> bool:
        return len(self.events) + count <= MAX_PENDING

    def require_capacity(self, count: int) -> None:
        """Raises CannotDo, without side effects, if `count` more events are too many."""
        if not self.has_capacity(count):
            raise CannotDo(
                "the ring is full, and no further event can be stored", "wait until it has space"
            )

    def add(self, core: CoreServices, *events: Event) -> None:
        if not self.events:
            self._mark(core)
        self.events += [(event.ID, event.encode()) for event in events]

    def record(self, core: CoreServices, now: int) -> bool:
        """Record the events in order. Returns False if the ring is full before the last one."""
        while self.events:
            # Removed before it is recorded: a full ring calls safe(), which may record too.
            first = ident, fields = self.events.pop(0)
            if not core.record(EVENTS[ident].decode(fields), now):
                if core.broken("full-forgets"):
                    continue
                self.events.insert(0, first)
                return False
            self._mark(core)
        return True

    def discard_recorded(self, core: CoreServices) -> None:
        """After a start: remove the events that were recorded before the power went."""
        for event in self._recorded(core):
            if self.events and self.events[0] == (event.ID, event.encode()):
                self.events.pop(0)
        self._mark(core)

    def _mark(self, core: CoreServices) -> None:
        self.epoch, self.head = core.ring.epoch, core.ring.head

    def _recorded(self, core: CoreServices) -> Iterator[Event]:
        ring = core.ring
        if ring.epoch != self.epoch:
            return
        for seq in range(max(self.head, ring.head - REREAD_DEPTH) + 1, ring.head + 1):
            record = decode_plaintext(core.reread(ring.epoch, seq), sender="device")
            if isinstance(record, EventRecord):
                yield record.event
