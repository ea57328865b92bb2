"""Interface of a port: bytes in, bytes out, and one end.

Serial, USB and simulated ports have the same interface. A port carries bytes and does not depend
on frames. All calls and all of `PortListener` happen on the event loop's thread.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

WRITE_BOUND: Final = 64 * 1024
"""Limit of bytes that wait for a port. A device that does not accept them is treated as lost."""


class PortLost(Exception):
    """The port has ended: unplugged, hung up, broken, or it accepts no more bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PortRefused(Exception):
    """The port cannot be opened. `absent`: it does not exist, and may be plugged in later."""

    def __init__(self, reason: str, *, absent: bool = False) -> None:
        super().__init__(reason, absent)
        self.reason = reason
        self.absent = absent

    def __str__(self) -> str:
        return self.reason


def no_thread(name: str, problem: RuntimeError) -> PortRefused:
    """Error if no thread can be started now; a retry may succeed."""
    return PortRefused(f"{name}: the machine is short of threads ({problem})")


def monotonic_us() -> int:
    """Whole microseconds of the clock that event loops use."""
    return time.monotonic_ns() // 1000


class PortListener(Protocol):
    """Receives the bytes of a port."""

    def heard(self, data: bytes) -> None:
        """These bytes were received, in order. Never empty."""

    def lost(self, why: PortLost) -> None:
        """The port has ended. The last call, made once, and never after close()."""


class Port(Protocol):
    """An open port."""

    @property
    def name(self) -> str:
        """Its path or USB serial number."""

    def write(self, data: bytes) -> None:
        """Queue these bytes. Never blocks or raises; ignored on a port that has ended. If the queue
        exceeds WRITE_BOUND, the port ends and `lost` is called soon after."""

    async def close(self) -> None:
        """Close the port. Queued bytes are dropped, and no byte is delivered afterwards."""
