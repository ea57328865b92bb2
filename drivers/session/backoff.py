"""Delays between retries."""

from __future__ import annotations


class Backoff:
    """Exponential backoff: `first` seconds, then twice as long each time, up to `maximum`."""

    def __init__(self, first: float, maximum: float) -> None:
        self._first = first
        self._maximum = maximum
        self._next = first

    def next_delay(self) -> float:
        """Seconds to wait before the next retry."""
        delay, self._next = self._next, min(2 * self._next, self._maximum)
        return delay

    def reset(self) -> None:
        """The next delay is the first one again."""
        self._next = self._first
