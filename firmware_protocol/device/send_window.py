"""The send window of one session, and the free space of the ring."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.folder import StateStore
from firmware_protocol.device.ring import AckedPosition, Ring
from firmware_protocol.messages import (
    PRESSURE_PERCENT,
    RING_SPARE,
    WINDOW,
    Event,
    Fault,
    LogPressure,
    Paired,
    Power,
    Tamper,
)


class Sending:
    """The send window since RESUME was answered OK. Its methods return the records that the caller
    sends at once and in this order."""

    def __init__(self, first: int, behaviour: Behaviour) -> None:
        self.acked = first - 1
        self.sent = first - 1
        """The last record that was sent since RESUME."""
        self.window = behaviour.window(WINDOW)
        self._behaviour = behaviour
        self._retries = 0
        self._last: dict[int, int] = {}
        """When each unacknowledged record was sent last."""

    def fresh(self, head: int, now: int) -> list[int]:
        """Records that fit the window and were not sent yet."""
        new = list(range(self.sent + 1, min(head, self._limit()) + 1))
        if new:
            self.sent = new[-1]
            self._note(new, now)
        return new

    def retry(self, now: int) -> list[int]:
        """Records whose acknowledgement timed out."""
        due = self.due()
        if due is None or now < due:
            return []
        self._retries += 1
        return self._from(self.acked + 1, now)

    def due(self) -> int | None:
        """When retry() returns records."""
        wait = self._behaviour.resend_wait(self._retries)
        last = self._last.get(self.acked + 1)
        if wait is None or last is None or not self.window:
            return None
        return last + wait

    def acknowledge(self, seq: int, window: int) -> bool:
        """Handle an EVT_ACK or HOST_BEAT. Returns whether the acknowledged position advanced."""
        if seq > self.sent:
            return False
        if self._behaviour.takes_window(older=seq < self.acked):
            self.window = self._behaviour.window(window)
        if seq <= self.acked:
            return False
        self.acked = seq
        self._retries = 0
        self._last = {one: when for one, when in self._last.items() if one > seq}
        return True

    def negative(self, first: int, now: int) -> list[int]:
        """Handle an EVT_NAK. Returns the records to send again at once."""
        if not self.acked < first <= self.sent or not self._behaviour.heeds_nak():
            return []
        again = self._from(first, now)
        # The timeout is always that of the oldest record.
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
"""Events that may use the last slots."""
PRESSED: Final = 1
FULL: Final = 2
"""Levels of LOG_PRESSURE."""
_REARM_PERCENT: Final = 50
_SAVE_EVERY: Final = 16
"""Between two records, the acknowledged position is stored when it has advanced by so many ..."""
_SAVE_BELOW: Final = 48
"""... or when fewer slots than this would be free after a start. The protocol requires 32."""


class Room:
    """Free slots of the ring. The acknowledged position is stored with each record, and between
    two records from time to time, so that it outlasts a start."""

    def __init__(self, ring: Ring, storage: StateStore, behaviour: Behaviour) -> None:
        self.full = False
        self._ring = ring
        self._storage = storage
        self._behaviour = behaviour
        self._at_start()

    def _at_start(self) -> None:
        ring = self._ring
        acked = self._behaviour.acked_at_start(self._load_position() or ring.acked)
        ring.acked = acked if acked.seq <= ring.head else ring.position(ring.head)
        self._saved = self.acked
        self._reported = self._storage.last_number("pressure")
        self._rearm()
        full = self.free <= RING_SPARE or (self._reported == FULL and self.free < 2 * RING_SPARE)
        self.full = self._behaviour.is_full(full)

    @property
    def acked(self) -> int:
        """The records up to this one need no slot: they are acknowledged, or lost by damage."""
        return max(self._ring.acked.seq, self._ring.oldest - 1)

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
        """Whether a slot is free for this event."""
        room = self.free > (0 if isinstance(event, _SPARE) else RING_SPARE)
        return self._behaviour.has_room(room)

    def acknowledge(self, seq: int) -> None:
        """Set the acknowledged position. Only RESUME with ADOPT moves it back, durably."""
        self._ring.acked = self._ring.position(seq)
        if self.full and self.free >= 2 * RING_SPARE:
            self.full = False
        self._rearm()
        self._save_position()

    def committed(self) -> None:
        """Update the figures after a commit, which has stored the position."""
        self._saved = self.acked

    def pressure(self) -> int:
        """The level of LOG_PRESSURE to record now: FULL, PRESSED, or 0 for none."""
        if self.free <= RING_SPARE and self._reported < FULL:
            return FULL
        if self.percent >= PRESSURE_PERCENT and self._reported < PRESSED:
            return PRESSED
        return 0

    def set_reported(self, pressure: int) -> None:
        """Store the level after it was recorded: a power cut in between repeats the record."""
        self._reported = pressure
        self._storage.set_number("pressure", pressure)

    def becomes_full(self) -> bool:
        """Whether the ring has just become full."""
        if self.full or not self._behaviour.is_full(self.free <= RING_SPARE):
            return False
        self.full = True
        return True

    def _rearm(self) -> None:
        """Below half, both levels may be reported again."""
        if self._reported and self.used * 100 < _REARM_PERCENT * self._ring.capacity:
            self.set_reported(0)

    def _save_position(self) -> None:
        """Store the acknowledged position from time to time. After a start it may be too low, but
        never too high, and at least 32 of the free slots are still free."""
        ring = self._ring
        ahead = self.acked - self._saved
        free_after_start = ring.capacity - (ring.head - self._saved)
        if ahead < 0 or ahead >= _SAVE_EVERY or (ahead and free_after_start < _SAVE_BELOW):
            self._saved = self.acked
            words = (str(ring.epoch), ring.chain.hex(), str(self.acked), ring.acked.chain.hex())
            self._storage.save("acknowledged", " ".join(words).encode() + b"\n")

    def _load_position(self) -> AckedPosition | None:
        """The position that was stored after the last record; None if there is none."""
        words = self._storage.load("acknowledged").decode().split()
        head = [str(self._ring.epoch), self._ring.chain.hex()]
        if len(words) != 4 or words[:2] != head:
            return None
        return AckedPosition(int(words[2]), bytes.fromhex(words[3]))
