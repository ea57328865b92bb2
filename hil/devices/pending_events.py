"""Events that a mechanism owes to the ring: each is recorded once, whatever comes between.

The ring may be full, and power may go at any moment. So what must not be lost is kept together
with the rest of what the mechanism keeps, before it is recorded, and struck off afterwards; after
a start the ring itself tells how far that had come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from firmware_protocol.device.interfaces import CannotDo, CoreServices
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.limits import REREAD_DEPTH
from firmware_protocol.messages.registry import EVENTS
from firmware_protocol.tablelink import plaintext

MAX_PENDING: Final = 64
"""As many events as a mechanism remembers while the ring is full."""
POLL_US: Final = 100_000
"""How often it looks whether the ring has room again."""


class PendingEvents(Struct):
    events: list[tuple[int, bytes]] = []
    """Id and fields of each."""
    epoch: int = 0
    head: int = 0
    """The last record of that ring when the first of them was owed: it can only come after."""

    def takes(self, count: int) -> bool:
        """Whether so many more can be remembered."""
        return len(self.events) + count <= MAX_PENDING

    def room_for(self, count: int) -> None:
        """CannotDo if so many more would be too many: nothing happened then."""
        if not self.takes(count):
            raise CannotDo(
                "the ring is full, and nothing more is remembered", "wait until it has room"
            )

    def add(self, desk: CoreServices, *events: Event) -> None:
        if not self.events:
            self._mark(desk)
        self.events += [(event.ID, event.encode()) for event in events]

    def settle(self, desk: CoreServices, now: int) -> bool:
        """Record what is owed. False: the ring has no room for all of it."""
        while self.events:
            # Taken off before it is recorded: a full ring calls safe(), which may record too.
            first = ident, fields = self.events.pop(0)
            if not desk.record(EVENTS[ident].decode(fields), now):
                if desk.broken("full-forgets"):
                    continue
                self.events.insert(0, first)
                return False
            self._mark(desk)
        return True

    def recall(self, desk: CoreServices) -> None:
        """After a start: strike off what had come into the ring before the power went."""
        for event in self._recorded(desk):
            if self.events and self.events[0] == (event.ID, event.encode()):
                self.events.pop(0)
        self._mark(desk)

    def _mark(self, desk: CoreServices) -> None:
        self.epoch, self.head = desk.ring.epoch, desk.ring.head

    def _recorded(self, desk: CoreServices) -> Iterator[Event]:
        ring = desk.ring
        if ring.epoch != self.epoch:
            return
        first = max(self.head, ring.head - REREAD_DEPTH) + 1
        for seq in range(first, ring.head + 1):
            record = plaintext.decode(desk.reread(ring.epoch, seq), sender="device")
            if isinstance(record, plaintext.EventRecord):
                yield record.event
