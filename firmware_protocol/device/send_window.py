"""Which records are on their way in one session, from the RESUME that was answered OK."""

from __future__ import annotations

from firmware_protocol.device.behaviour import Ways
from firmware_protocol.messages.limits import WINDOW


class Sending:
    """Says what to send; who asks sends it, at once and in this order."""

    def __init__(self, first: int, ways: Ways) -> None:
        self.acked = first - 1
        self.sent = first - 1
        """The last record that was sent since RESUME."""
        self.window = ways.window(WINDOW)
        self._ways = ways
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
        wait = self._ways.resend_wait(self._times)
        last = self._last.get(self.acked + 1)
        if wait is None or last is None or not self.window:
            return None
        return last + wait

    def acknowledge(self, seq: int, window: int) -> bool:
        """An EVT_ACK or HOST_BEAT. Whether the acknowledged position moved on."""
        if seq > self.sent:
            return False
        if self._ways.takes_window(older=seq < self.acked):
            self.window = self._ways.window(window)
        if seq <= self.acked:
            return False
        self.acked = seq
        self._times = 0
        self._last = {one: when for one, when in self._last.items() if one > seq}
        return True

    def wanted(self, first: int, now: int) -> list[int]:
        """An EVT_NAK: what goes out again at once, if it may."""
        if not self.acked < first <= self.sent or not self._ways.heeds_nak():
            return []
        again = self._from(first, now)
        # The wait is the oldest one's, whatever goes out.
        self._note(list(self._ways.wait_after_nak(self.acked + 1)), now)
        return again

    def _from(self, first: int, now: int) -> list[int]:
        out = list(range(first, self._ways.last_of(self.sent, self._limit()) + 1))
        self._note(out, now)
        return out

    def _note(self, seqs: list[int], now: int) -> None:
        self._last.update(dict.fromkeys(seqs, now))
        if self._ways.sent_is_received() and seqs:
            self.acked = max(self.acked, seqs[-1])

    def _limit(self) -> int:
        return self.acked + self.window
