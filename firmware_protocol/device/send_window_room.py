"""How much of the ring is acknowledged: room for more, LOG_PRESSURE, FULL."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device.behaviour import Ways
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.storage_kept import Kept
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import Fault, LogPressure, Paired, Power, Tamper
from firmware_protocol.messages.limits import PRESSURE_PERCENT, RING_SPARE

_SPARE: Final = (Power, Tamper, Fault, LogPressure, Paired)
"""What may use the last slots."""
PRESSED: Final = 1
FULL: Final = 2
"""What LOG_PRESSURE has said last."""
_CALM_PERCENT: Final = 50
_KEEP_EVERY: Final = 16
"""Acknowledgements are kept when they have moved on by so many records ..."""
_KEEP_BELOW: Final = 48
"""... or when fewer slots than this would be free after a start. The page wants 32."""


class Room:
    def __init__(self, ring: Ring, kept: Kept, ways: Ways) -> None:
        self.full = False
        self._ring = ring
        self._kept = kept
        self._ways = ways
        self._at_start()

    def _at_start(self) -> None:
        epoch, seq = self._kept_position()
        ours = seq if epoch == self._ring.epoch else 0
        self._saved = self.acked = min(max(ours, self._ring.oldest - 1), self._ring.head)
        self._said = self._kept.last_number("pressure")
        self._calm_down()
        full = self.free <= RING_SPARE or (self._said == FULL and self.free < 2 * RING_SPARE)
        self.full = self._ways.is_full(full)

    @property
    def used(self) -> int:
        return self._ring.head - self.acked

    @property
    def free(self) -> int:
        return self._ring.capacity - self.used

    @property
    def percent(self) -> int:
        return self.used * 100 // self._ring.capacity

    def has(self, event: Event) -> bool:
        """Whether there is a slot that this event may have."""
        room = self.free > (0 if isinstance(event, _SPARE) else RING_SPARE)
        return self._ways.has_room(room)

    def acknowledge(self, seq: int) -> None:
        """All up to seq are the host's now; or, after RESUME, no more than these."""
        self.acked = seq
        if self.full and self.free >= 2 * RING_SPARE:
            self.full = False
        self._calm_down()
        self._keep()

    def committed(self) -> None:
        """A record was added."""
        self.acked = max(self.acked, self._ring.oldest - 1)
        self._keep()

    def pressure(self) -> int:
        """Which LOG_PRESSURE is to be recorded now: FULL, PRESSED, or 0 for none."""
        if self.free <= RING_SPARE and self._said < FULL:
            return FULL
        if self.percent >= PRESSURE_PERCENT and self._said < PRESSED:
            return PRESSED
        return 0

    def said(self, pressure: int) -> None:
        """It was recorded, and is kept only now: if power goes before, it comes once more."""
        self._said = pressure
        self._kept.set_number("pressure", pressure)

    def fills(self) -> bool:
        """Whether the ring has just become full."""
        if self.full or not self._ways.is_full(self.free <= RING_SPARE):
            return False
        self.full = True
        return True

    def _calm_down(self) -> None:
        """Below half, both may be said again."""
        if self._said and self.used * 100 < _CALM_PERCENT * self._ring.capacity:
            self.said(0)

    def _keep(self) -> None:
        """Keep the position now and then: after a start records may be taken for not acknowledged,
        never the other way round, and 32 slots are free that were."""
        ahead = self.acked - self._saved
        free_after_start = self._ring.capacity - (self._ring.head - self._saved)
        if ahead < 0 or ahead >= _KEEP_EVERY or (ahead and free_after_start < _KEEP_BELOW):
            self._saved = self.acked
            self._kept.keep("acknowledged", b"%d %d\n" % (self._ring.epoch, self.acked))

    def _kept_position(self) -> tuple[int, int]:
        words = self._kept.kept("acknowledged").split()
        return (int(words[0]), int(words[1])) if len(words) == 2 else (0, 0)
