"""One timer for all that is due at a device, which knows when the host stood still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

LATE_US: Final = 250_000
"""Microseconds after which a timer is late because the event loop, or the process, stood still."""
READ_FIRST: Final = 0.02
"""Seconds of a late timer for threads of ports to deliver what has arrived: a serial port is read
before timers anyway. Only then it is decided what has timed out."""


class DueTimer:
    """Calls back when something is due. Event loop only."""

    def __init__(
        self,
        clock: Callable[[], int],
        due: Callable[[], int | None],
        wake: Callable[[int, int], None],
    ) -> None:
        """`due` returns when `wake` must be called, None for never. `wake` gets the time and for
        how long the loop stood still before, 0 if it did not; both in microseconds."""
        self._clock = clock
        self._due = due
        self._wake = wake
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0
        self._late = 0

    def set(self) -> None:
        """Set it to what is due next."""
        now = self._clock()
        if self._late or (self._timer is not None and now - self._due_at >= LATE_US):
            return  # it is late already: received bytes are processed first
        self.cancel()
        due = self._due()
        if due is not None:
            self._due_at = max(now, due)
            delay = (self._due_at - now) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def cancel(self) -> None:
        """Nothing is due any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._late = 0

    def _fire(self) -> None:
        now = self._clock()
        late, self._late = self._late, 0
        if not late and now - self._due_at >= LATE_US:
            self._late = now - self._due_at
            self._timer = asyncio.get_running_loop().call_later(READ_FIRST, self._fire)
            return
        self._timer = None
        self._wake(now, late)
        self.set()
