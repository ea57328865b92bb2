"""The system clocks, their quality, the gaming day, and detection of clock changes."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import UNSET

from controller.audit.format.records import DAY_US, ClockData, ClockQuality, Moment, utc_date

Clock: TypeAlias = Callable[[], Moment]
Day: TypeAlias = Callable[[int], str]
"""Returns the gaming day of a UTC time in microseconds; empty if it is the date of that time."""

STEP_US: Final = 500_000
"""Tolerance: a larger difference between UTC and the monotonic clock means that UTC was set."""
ASK_EVERY: Final = 1_000_000_000
"""Nanoseconds for which the clock quality is cached."""
_UNSYNCED: Final = 5
"""adjtimex(2): TIME_ERROR, the clock is not synchronised."""
_TIMEX_BYTES: Final = 256
"""Larger than struct timex on any machine; modes 0 only reads."""


def _kernel_quality() -> ClockQuality:
    """Ask the kernel for the clock's synchronisation state."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "adjtimex", None)
    if call is None:
        return "unknown"
    answer = call(ctypes.create_string_buffer(_TIMEX_BYTES))
    if answer < 0:
        return "unknown"
    return "unsynced" if answer == _UNSYNCED else "synced"


class SystemClock:
    """Reads the system clocks; caches the clock quality for ASK_EVERY."""

    def __init__(self, ask: Callable[[], ClockQuality] = _kernel_quality) -> None:
        self._ask = ask
        self._asked_at = 0
        self._quality: ClockQuality = "unknown"

    def __call__(self) -> Moment:
        mono = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if not self._asked_at or mono - self._asked_at >= ASK_EVERY:
            self._quality = self._ask()
            self._asked_at = mono
        return Moment(time.time_ns() // 1000, mono, self._quality)


def gaming_day(starts: timedelta = timedelta(0)) -> Day:
    """Gaming days by UTC that start `starts` after midnight."""
    shift = int(starts.total_seconds()) * 1_000_000

    @lru_cache(maxsize=1)
    def named(day: int, date: int) -> str:
        return "" if day == date else utc_date(day * DAY_US)

    return lambda utc: named((utc - shift) // DAY_US, utc // DAY_US)


def clock_set(
    last: Moment | None, now: Moment, *, runs: bool, two: tuple[str, str] | None = None
) -> ClockData | None:
    """The `clock` record to append first if UTC was set since the last record, else None. `runs`:
    the last record is of this boot, so `mono` is comparable. `two`: two people who confirmed the
    clock before this boot."""
    if last is None:
        return None
    wanted = last.utc
    if runs:
        wanted += (now.mono - last.mono) // 1000
        if abs(now.utc - wanted) <= STEP_US and now.utc >= last.utc:
            return None
        return ClockData(wanted, last.mono)
    if now.utc >= last.utc:
        return None
    return ClockData(wanted, last.mono, UNSET if two is None else two)
