"""A device on a simulated USB bus, in an event loop of its own beside the host of a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """A device on a bus, what it has received, and a switch for its firmware."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bus: Path, *, echo: bool = False, **more: Any
    ) -> None:
        self.received: list[bytes] = []
        self.reading = True
        self._loop = loop
        self._options = {"reading": lambda: self.reading, **more}
        on_data = self._echo if echo else self.received.append
        self.device: UsbDevice = self.call(lambda: UsbDevice(bus, NAMES, on_data, **self._options))
        self.call(self.device.plug)

    def _echo(self, data: bytes) -> None:
        self.device.write(data)

    def call(self, do: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the loop of the device and wait for its result."""

        async def done() -> Any:
            return do(*arguments)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(5)

    @property
    def heard(self) -> list[bytes]:
        """What the firmware has: a transfer is done for the host a moment before that."""
        found: list[bytes] = self.call(lambda: self.received)
        return found


@contextmanager
def device_on(bus: Path, **more: Any) -> Iterator[Rig]:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            rig = Rig(loop, bus, **more)
            yield rig
            rig.call(rig.device.close)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


def find(bus: Path) -> Any:
    return usb.core.find(backend=backend(str(bus)))
