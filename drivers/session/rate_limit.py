"""Rate limits for reports of what an unauthenticated peer can cause."""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, TypeVar

REPORT_INTERVAL_US: Final = 1_000_000
"""Minimum time between two reports."""
MAX_KEYS: Final = 32
"""Limit of kinds that are counted separately in one report."""
OTHERS: Final = "others"

Counts = tuple[tuple[str, int], ...]
T = TypeVar("T")


class ReportLimiter:
    """Counts events: the first is reported at once, the following at most once a second."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._next = 0

    def add(self, key: str, count: int = 1) -> None:
        known = key in self._counts or len(self._counts) < MAX_KEYS
        self._counts[key if known else OTHERS] += count

    def due(self) -> int | None:
        """Time of the next report; None: nothing to report."""
        return self._next if self._counts else None

    def due_counts(self, now: int) -> Counts:
        """The counts to report now, sorted by key; empty if nothing is due."""
        if not self._counts or now < self._next:
            return ()
        return self.all_counts(now)

    def all_counts(self, now: int) -> Counts:
        """All counts, due or not."""
        self._next = now + REPORT_INTERVAL_US
        counts = tuple(sorted(self._counts.items()))
        self._counts.clear()
        return counts


class LatestValue(Generic[T]):
    """A value whose first change is reported at once, and later ones at most once a second. The
    latest value wins."""

    def __init__(self, value: T) -> None:
        self._value = self._reported = value
        self._next = 0

    def set(self, value: T) -> None:
        self._value = value

    def set_reported(self, value: T) -> None:
        """The value is this, and was reported in another way."""
        self._value = self._reported = value

    def due(self) -> int | None:
        """Time of the next report; None: nothing to report."""
        return None if self._value == self._reported else self._next

    def due_value(self, now: int) -> T | None:
        """The value to report now; None if nothing is due."""
        return self.unreported(now) if now >= self._next else None

    def unreported(self, now: int) -> T | None:
        """The value if it was not reported yet, due or not."""
        if self._value == self._reported:
            return None
        self._next = now + REPORT_INTERVAL_US
        self._reported = self._value
        return self._value
