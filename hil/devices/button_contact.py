"""A button's contact: what the finger does to it, and what is left of that after debouncing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from firmware_protocol.messages.limits import DEBOUNCE_MS

DEBOUNCE_US: Final = DEBOUNCE_MS * 1000


def bouncing(start: int, bounces: int) -> list[int]:
    """When a contact changes that is moved at `start` and bounces so often within the debounce
    time: each bounce is one change back and one again."""
    changes = 2 * bounces + 1
    return [start + DEBOUNCE_US * number // changes for number in range(changes)]


class Contact:
    """Open at first. Each flip closes or opens it; an edge counts once it has been stable."""

    def __init__(self) -> None:
        self.touched = False
        """How the metal is at this moment."""
        self.closed = False
        """How it counts."""
        self._since = 0
        self._flips: deque[int] = deque()

    def forget(self, now: int) -> None:
        """The firmware starts: the finger is where it was, but nothing counts yet."""
        self.closed = False
        self._since = now

    def flip(self, times: Iterable[int]) -> None:
        """The contact will change at these times, which are in order and after those before."""
        self._flips.extend(times)

    def let_go(self, times: Iterable[int]) -> None:
        """The finger goes now: what was to come is off, and the contact opens."""
        self._flips.clear()
        if self.touched:
            self._flips.extend(times)

    @property
    def moving(self) -> bool:
        """Whether the metal will change by itself."""
        return bool(self._flips)

    def due(self, settle_us: int = DEBOUNCE_US) -> int | None:
        """When something happens next."""
        times = list(self._times(settle_us))
        return min(times) if times else None

    def step(self, at: int, settle_us: int = DEBOUNCE_US) -> bool:
        """What happens at `at`, which due() has named: True if it is an edge that counts."""
        if self.touched != self.closed and self._since + settle_us <= at:
            # Before a flip of the same moment: it was stable for just long enough.
            self.closed = self.touched
            return True
        if self._flips and self._flips[0] <= at:
            self._since = self._flips.popleft()
            self.touched = not self.touched
        return False

    def _times(self, settle_us: int) -> Iterator[int]:
        if self._flips:
            yield self._flips[0]
        if self.touched != self.closed:
            yield self._since + settle_us
