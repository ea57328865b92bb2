"""What time it is, and what the machine itself thinks of that."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from msgspec import UNSET

from controller.audit.format.records import ClockData, ClockQuality, Moment

Clock: TypeAlias = Callable[[], Moment]
Day: TypeAlias = Callable[[int], str]
"""The gaming day at a time of utc."""

STEP_US: Final = 500_000
"""A clock that leaves its pace by more was set."""
ASK_EVERY: Final = 1_000_000_000
"""Nanoseconds for which the machine's word is good."""
_UNSYNCED: Final = 5
"""adjtimex(2): TIME_ERROR, the clock is not synchronised."""
_TIMEX_BYTES: Final = 256
"""More than struct timex has on any machine; with modes 0 nothing is set by it."""


def _asked() -> ClockQuality:
    """What the kernel says of its clock."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "adjtimex", None)
    if call is None:
        return "unknown"
    answer = call(ctypes.create_string_buffer(_TIMEX_BYTES))
    if answer < 0:
        return "unknown"
    return "unsynced" if answer == _UNSYNCED else "synced"


class SystemClock:
    """The machine's clocks. Its quality is asked for once a second at most."""

    def __init__(self, ask: Callable[[], ClockQuality] = _asked) -> None:
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
    """The day by UTC, beginning so long after midnight."""
    known: dict[int, str] = {}
    shift = int(starts.total_seconds()) * 1_000_000

    def day(utc: int) -> str:
        number = (utc - shift) // 86_400_000_000
        if number not in known:
            known.clear()
            begins = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)
            known[number] = begins.date().isoformat()
        return known[number]

    return day


def clock_set(
    last: Moment | None, now: Moment, *, runs: bool, two: tuple[str, str] | None = None
) -> ClockData | None:
    """What is to be told before anything else is, where the clock was set since the last record.
    `runs`: that is of the same boot, so that `mono` has gone on from there. `two`: people who said
    before this boot that the clock is right."""
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
