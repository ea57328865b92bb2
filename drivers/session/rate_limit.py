"""What others can cause as often as they like, so that it is reported but cannot flood."""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, TypeVar

REPORT_INTERVAL_US: Final = 1_000_000
"""Least time between two reports."""
MAX_KEYS: Final = 32
"""Kinds that are told apart in one report."""
OTHERS: Final = "others"

Counts = tuple[tuple[str, int], ...]
T = TypeVar("T")


class ReportLimiter:
    """The first is reported at once, what follows at most once a second."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._next = 0

    def add(self, key: str, count: int = 1) -> None:
        known = key in self._counts or len(self._counts) < MAX_KEYS
        self._counts[key if known else OTHERS] += count

    def due(self) -> int | None:
        """When the next report is due; None: there is nothing to report."""
        return self._next if self._counts else None

    def take(self, now: int) -> Counts:
        """What is to be reported now, in the order of the keys; empty if nothing is due."""
        if not self._counts or now < self._next:
            return ()
        return self.rest(now)

    def rest(self, now: int) -> Counts:
        """All that was counted, due or not."""
        self._next = now + REPORT_INTERVAL_US
        counts = tuple(sorted(self._counts.items()))
        self._counts.clear()
        return counts


class LatestValue(Generic[T]):
    """A value that changes: its first change is reported at once, what follows at most once a
    second, as it is then."""

    def __init__(self, value: T) -> None:
        self._value = self._told = value
        self._next = 0

    def put(self, value: T) -> None:
        self._value = value

    def known(self, value: T) -> None:
        """It is this, and that has been told otherwise."""
        self._value = self._told = value

    def due(self) -> int | None:
        """When the next report is due; None: there is nothing to report."""
        return None if self._value == self._told else self._next

    def take(self, now: int) -> T | None:
        """What is to be reported now, if anything."""
        return self.rest(now) if now >= self._next else None

    def rest(self, now: int) -> T | None:
        """What was not reported yet, due or not."""
        if self._value == self._told:
            return None
        self._next = now + REPORT_INTERVAL_US
        self._told = self._value
        return self._value
