"""One timer for all that is due at a device, set once for a batch of activity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

BATCH_DELAY: Final = 0.005
"""Seconds until the timer is set: once for a batch of activity. Nothing is due earlier."""
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
        self._setter: asyncio.TimerHandle | None = None
        self._due_at = 0
        self._late = 0

    def set_soon(self) -> None:
        """Set it after this batch of activity."""
        if self._setter is None:
            self._setter = asyncio.get_running_loop().call_later(BATCH_DELAY, self.set)

    def set(self) -> None:
        """Set it to what is due next."""
        _cancel(self._setter)
        self._setter = None
        if self._late:  # it is due already, and waits for what has arrived
            return
        _cancel(self._timer)
        self._timer = None
        now, due = self._clock(), self._due()
        if due is not None:
            self._due_at = max(now, due)
            delay = (self._due_at - now) / 1_000_000
            self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def cancel(self) -> None:
        """Nothing is due any more."""
        _cancel(self._timer)
        _cancel(self._setter)
        self._timer = self._setter = None
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


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
