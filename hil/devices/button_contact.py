"""The contact of a button: its bounces, and the edges that remain after debouncing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from firmware_protocol.messages import DEBOUNCE_MS

DEBOUNCE_US: Final = DEBOUNCE_MS * 1000


def bounce_times(start: int, bounces: int) -> list[int]:
    """The times at which a contact changes that is moved at `start`, all within the debounce time.
    Each bounce is one change back and one forth."""
    changes = 2 * bounces + 1
    return [start + DEBOUNCE_US * number // changes for number in range(changes)]


class Contact:
    """A contact, open at first. A change becomes an edge once it has been stable."""

    def __init__(self) -> None:
        self.touched = False
        """The physical state."""
        self.closed = False
        """The debounced state."""
        self._since = 0
        self._flips: deque[int] = deque()

    def reset(self, now: int) -> None:
        """The firmware starts: the physical state stays, the debounced state is open."""
        self.closed = False
        self._since = now

    def flip(self, times: Iterable[int]) -> None:
        """Schedule changes, in order and after those that are scheduled already."""
        self._flips.extend(times)

    def release(self, times: Iterable[int]) -> None:
        """Cancel what is scheduled and open the contact at these times."""
        self._flips.clear()
        if self.touched:
            self._flips.extend(times)

    @property
    def moving(self) -> bool:
        """Whether changes are scheduled."""
        return bool(self._flips)

    def due(self, settle_us: int = DEBOUNCE_US) -> int | None:
        """The time of the next change or edge."""
        times = [*self._flips][:1]
        if self.touched != self.closed:
            times.append(self._since + settle_us)
        return min(times, default=None)

    def step(self, at: int, settle_us: int = DEBOUNCE_US) -> bool:
        """Process the time `at`, which due() returned. Returns whether it is an edge."""
        if self.touched != self.closed and self._since + settle_us <= at:
            # Before a flip of the same moment: it was stable for just long enough.
            self.closed = self.touched
            return True
        if self._flips and self._flips[0] <= at:
            self._since = self._flips.popleft()
            self.touched = not self.touched
        return False
