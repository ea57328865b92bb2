"""The host's clock, as links and happenings have it."""

from __future__ import annotations

import time


def monotonic_us() -> int:
    """Whole microseconds of the clock that event loops go by."""
    return time.monotonic_ns() // 1000
