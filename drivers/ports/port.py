"""What a port is to whoever uses it: bytes to hear, bytes to write, and one end.

Serial and USB ports look the same from here, and so does a simulated one: a port carries bytes and
knows nothing of frames. All calls and all of `PortListener` happen on the event loop's thread.
"""

from __future__ import annotations

import time
from typing import Final, Protocol

WRITE_BOUND: Final = 64 * 1024
"""Bytes that may wait for a port. A device that leaves more untaken is as good as gone."""


class PortLost(Exception):
    """The port has ended by itself: unplugged, hung up, broken, or it takes no more bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PortRefused(Exception):
    """The port cannot be opened. `absent` says that there is none: it may come later."""

    def __init__(self, reason: str, *, absent: bool = False) -> None:
        super().__init__(reason, absent)
        self.reason = reason
        self.absent = absent

    def __str__(self) -> str:
        return self.reason


def no_thread(name: str, problem: RuntimeError) -> PortRefused:
    """What the machine says when it can start no more threads. It may later."""
    return PortRefused(f"{name}: the machine is short of threads ({problem})")


def monotonic_us() -> int:
    """Whole microseconds of the clock that event loops use."""
    return time.monotonic_ns() // 1000


class PortListener(Protocol):
    """Receives the bytes of a port."""

    def heard(self, data: bytes) -> None:
        """These bytes came, in their order. Never empty."""

    def lost(self, why: PortLost) -> None:
        """The port has ended by itself. Called once, and nothing after it; not after close()."""


class Port(Protocol):
    """An open port."""

    @property
    def name(self) -> str:
        """As people know it: its path, or its USB serial number."""

    def write(self, data: bytes) -> None:
        """Queue these bytes. Never blocks and never raises; does nothing on a port that has ended.
        Where WRITE_BOUND would be passed the port ends, and `lost` is told soon after."""

    async def close(self) -> None:
        """Let go of the port. What is still queued is dropped; no byte is heard afterwards."""
