"""The tester's end of the cable: bytes out, bytes and their time in. In real time or in simulated.

Times are whole microseconds. On a simulated wire time passes only while somebody listens: it jumps
to the next thing that is due, so that a minute of silence costs nothing and every gap is exact.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from drivers.ports import (
    Address,
    Place,
    Port,
    PortLost,
    PortRefused,
    ask,
    open_port,
    usb_places,
)
from firmware_protocol.device.interfaces import Peer

_T = TypeVar("_T")
Pump = Callable[[int], Awaitable[None]]

_BUSY_TURNS: Final = 10_000
"""A device that is due again at the same moment more often than this hangs."""
MAX_WAITING: Final = 1 << 20
"""Bytes that may wait for whoever listens. Nobody is so slow, and no device has so much to say."""
_TRY_AGAIN_US: Final = 50_000


class WireLost(Exception):
    """The port has ended by itself."""


class ReceivedBytes(Struct, frozen=True):
    """Bytes, and when they came."""

    data: bytes
    at: int


class TesterWire(Protocol):
    simulated: bool

    def now(self) -> int:
        """The time of this wire."""

    def send(self, data: bytes) -> None:
        """Send these bytes."""

    async def hear(self, until: int) -> ReceivedBytes | None:
        """The next bytes; None when `until` has come first. WireLost when the port has ended."""

    async def beside(self, doing: Coroutine[Any, Any, _T], pump: Pump) -> _T:
        """Wait for `doing`, and keep the line going with `pump` meanwhile."""

    async def reopen(self, until: int) -> None:
        """The device was without power: open the port again where it has gone. WireLost when it
        has not come back by then."""

    async def sleep(self, until: int) -> None:
        """Let time pass, whatever is heard."""

    async def close(self) -> None:
        """Let go of the port."""


class SimulatedWire:
    """A device in memory."""

    simulated = True

    def __init__(self, peer: Peer, now: int) -> None:
        self._peer = peer
        self._now = now

    def now(self) -> int:
        return self._now

    def send(self, data: bytes) -> None:
        self._peer.receive(data, self._now)

    async def hear(self, until: int) -> ReceivedBytes | None:
        for _ in range(_BUSY_TURNS):
            data = self._peer.take()
            if data:
                return ReceivedBytes(data, self._now)
            due = self._peer.due()
            if self._now >= until and (due is None or due > self._now):
                return None
            self._now = max(self._now, until if due is None else min(due, until))
            self._peer.wake(self._now)
        raise WireLost(f"the simulated device is busy for ever at {self._now} us")

    async def beside(self, doing: Coroutine[Any, Any, _T], pump: Pump) -> _T:
        return await doing

    async def reopen(self, until: int) -> None:
        pass

    async def sleep(self, until: int) -> None:
        while self._now < until:
            await self.hear(until)

    async def close(self) -> None:
        pass


class PortWire:
    """A device at a port, in real time."""

    simulated = False

    def __init__(self, address: Address) -> None:
        self._address = address
        self._beside: set[Place] | None = None
        """Where others with its number were at first, if it was told by its place."""
        self._port: Port | None = None
        self._pieces: deque[ReceivedBytes] = deque()
        self._waiting = 0
        self._woken = asyncio.Event()
        self._lost: str | None = "it is not open"

    async def open(self) -> None:
        """Open the port, or PortRefused."""
        self._lost = None
        if self._address.place is not None and self._beside is None:
            self._beside = await ask(usb_places, self._address) - {self._address.place}
        self._port = await open_port(self._address, self)

    def heard(self, data: bytes) -> None:
        self._woken.set()
        if self._lost is not None:
            return
        self._waiting += len(data)
        if self._waiting > MAX_WAITING:
            self._lost = f"more bytes than {MAX_WAITING} wait to be looked at"
        else:
            self._pieces.append(ReceivedBytes(data, self.now()))

    def lost(self, why: PortLost) -> None:
        self._lost = why.reason
        self._woken.set()

    def now(self) -> int:
        return time.monotonic_ns() // 1000

    def send(self, data: bytes) -> None:
        if self._port is not None:
            self._port.write(data)

    async def hear(self, until: int) -> ReceivedBytes | None:
        self._woken.clear()
        if not self._pieces and self._lost is None:
            left = (until - self.now()) / 1e6
            try:
                async with asyncio.timeout(max(left, 0)):
                    await self._woken.wait()
            except TimeoutError:
                return None
        if self._pieces:
            piece = self._pieces.popleft()
            self._waiting -= len(piece.data)
            return piece
        if self._lost is not None:
            raise WireLost(f"the port has ended: {self._lost}")
        return None

    async def beside(self, doing: Coroutine[Any, Any, _T], pump: Pump) -> _T:
        task = asyncio.create_task(doing)
        task.add_done_callback(lambda _: self._woken.set())
        try:
            while not task.done():
                await self._go_on(pump, task)
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _go_on(self, pump: Pump, task: asyncio.Task[Any]) -> None:
        try:
            await pump(self.now() + 250_000)
        except WireLost:  # whoever cut the power says when it is done; then reopen() tells
            await asyncio.wait((task,))

    async def reopen(self, until: int) -> None:
        """After a cut a serial port is still there, and a USB device comes back as a new one."""
        await self._drop()
        while True:
            try:
                await self.open()
            except PortRefused as refused:
                self._lost = refused.reason
                await self._find_again()
                if self.now() >= until:
                    raise WireLost(f"the port did not come back: {refused.reason}") from None
                await asyncio.sleep(_TRY_AGAIN_US / 1e6)
            else:
                return

    async def _find_again(self) -> None:
        """A USB device that was told by its place has another one once it comes back."""
        if self._beside is None:
            return
        with suppress(PortRefused):  # the next try says the same
            came = await ask(usb_places, self._address) - self._beside
            if len(came) == 1:
                self._address = replace(self._address, place=came.pop())

    async def sleep(self, until: int) -> None:
        await asyncio.sleep(max(0, until - self.now()) / 1e6)

    async def _drop(self) -> None:
        self._pieces.clear()
        self._waiting = 0
        if self._port is not None:
            port, self._port = self._port, None
            await port.close()

    async def close(self) -> None:
        await self._drop()
