"""A device on a simulated USB bus, and hosts in threads beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import usb.core

from hil.ports import UsbDevice
from hil.ports.usb_backend import backend

NAMES = ("Holecard", "Sim shoe", "SH-0001")
SHORT = 30
"""Milliseconds in which nothing will come."""
LONG = 5_000
"""Milliseconds in which it will."""


class Rig:
    """A device on a bus, what it has heard, and a switch for its firmware."""

    def __init__(self, bus: Path, *, echo: bool = False, **more: Any) -> None:
        self.bus = bus
        self.ears: list[bytes] = []
        self.reading = True
        self._loop = asyncio.get_running_loop()
        on_data = self._echo if echo else self.ears.append
        self.device = UsbDevice(bus, NAMES, on_data, reading=lambda: self.reading, **more)
        self.device.plug()

    def _echo(self, data: bytes) -> None:
        self.device.write(data)

    @property
    def heard(self) -> list[bytes]:
        """What the firmware has, asked from another thread: a transfer is done for the host a
        moment before the firmware has it."""

        async def settled() -> list[bytes]:
            return self.ears

        return asyncio.run_coroutine_threadsafe(settled(), self._loop).result(5)


@asynccontextmanager
async def a_rig(bus: Path, **more: Any) -> AsyncIterator[Rig]:
    rig = Rig(bus, **more)
    try:
        yield rig
    finally:
        rig.device.close()


def find(bus: Path) -> Any:
    return usb.core.find(backend=backend(str(bus)))


def scene(bus: Path, host: Callable[[Rig, Callable[..., None]], None], **more: Any) -> None:
    """A device in a loop, and `host(rig, call)` in a thread beside it; `call` runs something in
    the loop and waits until it is done."""

    async def play() -> None:
        loop = asyncio.get_running_loop()

        def call(do: Callable[..., Any], *arguments: Any) -> None:
            async def done() -> None:
                do(*arguments)

            asyncio.run_coroutine_threadsafe(done(), loop).result(5)

        async with a_rig(bus, **more) as rig:
            await asyncio.to_thread(host, rig, call)

    asyncio.run(play())
