"""Which records are on their way in one session, from the RESUME that was answered OK."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.storage import StateStore
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import Fault, LogPressure, Paired, Power, Tamper
from firmware_protocol.messages.limits import PRESSURE_PERCENT, RING_SPARE, WINDOW


class Sending:
    """Says what to send; who asks sends it, at once and in this order."""

    def __init__(self, first: int, behaviour: Behaviour) -> None:
        self.acked = first - 1
        self.sent = first - 1
        """The last record that was sent since RESUME."""
        self.window = behaviour.window(WINDOW)
        self._behaviour = behaviour
        self._times = 0
        self._last: dict[int, int] = {}
        """When each record on its way was sent last."""

    def fresh(self, head: int, now: int) -> list[int]:
        """Records that may go out for the first time."""
        new = list(range(self.sent + 1, min(head, self._limit()) + 1))
        if new:
            self.sent = new[-1]
            self._note(new, now)
        return new

    def again(self, now: int) -> list[int]:
        """Records that are due once more."""
        due = self.due()
        if due is None or now < due:
            return []
        self._times += 1
        return self._from(self.acked + 1, now)

    def due(self) -> int | None:
        """When again() has something to send."""
        wait = self._behaviour.resend_wait(self._times)
        last = self._last.get(self.acked + 1)
        if wait is None or last is None or not self.window:
            return None
        return last + wait

    def acknowledge(self, seq: int, window: int) -> bool:
        """An EVT_ACK or HOST_BEAT. Whether the acknowledged position moved on."""
        if seq > self.sent:
            return False
        if self._behaviour.takes_window(older=seq < self.acked):
            self.window = self._behaviour.window(window)
        if seq <= self.acked:
            return False
        self.acked = seq
        self._times = 0
        self._last = {one: when for one, when in self._last.items() if one > seq}
        return True

    def wanted(self, first: int, now: int) -> list[int]:
        """An EVT_NAK: what goes out again at once, if it may."""
        if not self.acked < first <= self.sent or not self._behaviour.heeds_nak():
            return []
        again = self._from(first, now)
        # The wait is the oldest one's, whatever goes out.
        self._note(list(self._behaviour.wait_after_nak(self.acked + 1)), now)
        return again

    def _from(self, first: int, now: int) -> list[int]:
        out = list(range(first, self._behaviour.last_of(self.sent, self._limit()) + 1))
        self._note(out, now)
        return out

    def _note(self, seqs: list[int], now: int) -> None:
        self._last.update(dict.fromkeys(seqs, now))
        if self._behaviour.sent_is_received() and seqs:
            self.acked = max(self.acked, seqs[-1])

    def _limit(self) -> int:
        return self.acked + self.window


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
    def __init__(self, ring: Ring, kept: StateStore, behaviour: Behaviour) -> None:
        self.full = False
        self._ring = ring
        self._kept = kept
        self._behaviour = behaviour
        self._at_start()

    def _at_start(self) -> None:
        epoch, seq = self._kept_position()
        ours = seq if epoch == self._ring.epoch else 0
        self._saved = self.acked = min(max(ours, self._ring.oldest - 1), self._ring.head)
        self._said = self._kept.last_number("pressure")
        self._calm_down()
        full = self.free <= RING_SPARE or (self._said == FULL and self.free < 2 * RING_SPARE)
        self.full = self._behaviour.is_full(full)

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
        return self._behaviour.has_room(room)

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
        if self.full or not self._behaviour.is_full(self.free <= RING_SPARE):
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
