"""PortListener that remember, for tests of ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from drivers.ports import PortLost

PATIENCE = 10.0
"""Seconds after which something that should come will not come."""


class Listener:
    """Keeps what it heard, and lets a test wait for more."""

    def __init__(self) -> None:
        self.data = b""
        self.chunks = 0
        self.losses: list[PortLost] = []
        self._changed = asyncio.Event()

    def received(self, data: bytes) -> None:
        assert data
        self.data += data
        self.chunks += 1
        self._changed.set()

    def lost(self, why: PortLost) -> None:
        self.losses.append(why)
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until this holds; it is looked at whenever something came."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_heard(self, size: int) -> None:
        await self.until(lambda: len(self.data) >= size)

    async def until_lost(self, times: int = 1) -> None:
        await self.until(lambda: len(self.losses) >= times)


async def turns(count: int = 5) -> None:
    """Let the event loop go round a few times."""
    for _ in range(count):
        await asyncio.sleep(0)
