"""How a device's link gets on, for whoever watches over it from outside."""

from __future__ import annotations

import time

from firmware_protocol.host import HostLink


class Progress:
    """When anything was last done for it, and what its links have counted."""

    def __init__(self) -> None:
        self.turned_at = 0
        """By the host's monotonic clock, in microseconds."""
        self._link: HostLink | None = None
        self._past = (0, 0)
        """Of the links before this one."""

    def turn(self, now: int, link: HostLink | None) -> None:
        """Something was done, with this link."""
        self.turned_at = now
        if link is not self._link:
            self._past = (self.repeats, self.gaps)
            self._link = link

    @property
    def repeats(self) -> int:
        """Records that came once more though they were kept."""
        return self._past[0] + (0 if self._link is None else self._link.repeats)

    @property
    def gaps(self) -> int:
        """Records that came before one that was missing."""
        return self._past[1] + (0 if self._link is None else self._link.gaps)


def monotonic_us() -> int:
    """Whole microseconds of the clock that event loops go by."""
    return time.monotonic_ns() // 1000
