"""The tester's end of the cable, and noise on it. Times are whole microseconds."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from drivers.ports import (
    Address,
    Port,
    PortLost,
    PortRefused,
    UsbPlace,
    in_thread,
    open_port,
    usb_places,
)

_T = TypeVar("_T")
Pump = Callable[[int], Awaitable[None]]

MAX_WAITING: Final = 1 << 20
"""Limit of the receive buffer in bytes."""
_RETRY_US: Final = 50_000


class WireLost(Exception):
    """The port was closed by its other side."""


class ReceivedBytes(Struct, frozen=True):
    """Bytes and the time of their arrival."""

    data: bytes
    at: int


class TesterWire(Protocol):
    simulated: bool
    """Whether its times are exact: no port, no load and no other process delays anything."""

    def now(self) -> int:
        """The current time of this wire."""

    def send(self, data: bytes) -> None:
        """Send these bytes."""

    async def receive(self, until: int) -> ReceivedBytes | None:
        """Returns the next bytes, or None on the timeout `until`. Raises WireLost."""

    async def run_beside(self, doing: Coroutine[Any, Any, _T], pump: Pump) -> _T:
        """Await `doing` while `pump` keeps the sessions alive."""

    async def reopen(self, until: int) -> None:
        """After a power cut: retry opening the port. Raises WireLost on the timeout `until`."""

    async def sleep(self, until: int) -> None:
        """Wait, and ignore what is received."""

    async def close(self) -> None:
        """Release the port."""


class PortWire:
    """A device at a port, in real time."""

    simulated = False

    def __init__(self, address: Address) -> None:
        self._address = address
        self._others: set[UsbPlace] | None = None
        """Places of other devices with its serial number, if the address has a place."""
        self._port: Port | None = None
        self._pieces: deque[ReceivedBytes] = deque()
        self._waiting = 0
        self._woken = asyncio.Event()
        self._lost: str | None = "it is not open"

    async def open(self) -> None:
        """Open the port. Raises PortRefused."""
        self._lost = None
        if self._address.place is not None and self._others is None:
            self._others = await in_thread(usb_places, self._address) - {self._address.place}
        self._port = await open_port(self._address, self)

    def received(self, data: bytes) -> None:
        self._woken.set()
        if self._lost is not None:
            return
        self._waiting += len(data)
        if self._waiting > MAX_WAITING:
            self._lost = f"more bytes than {MAX_WAITING} were not read in time"
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

    async def receive(self, until: int) -> ReceivedBytes | None:
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

    async def run_beside(self, doing: Coroutine[Any, Any, _T], pump: Pump) -> _T:
        task = asyncio.create_task(doing)
        task.add_done_callback(lambda _: self._woken.set())
        try:
            while not task.done():
                await self._pump_once(pump, task)
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _pump_once(self, pump: Pump, task: asyncio.Task[Any]) -> None:
        try:
            await pump(self.now() + 250_000)
        except WireLost:  # the operator has cut the power; reopen() follows
            await asyncio.wait((task,))

    async def reopen(self, until: int) -> None:
        """After a power cut a serial port still exists; a USB device returns as a new one."""
        await self._drop()
        while True:
            try:
                await self.open()
            except PortRefused as refused:
                self._lost = refused.reason
                await self._find_place()
                if self.now() >= until:
                    raise WireLost(f"the port did not come back: {refused.reason}") from None
                await asyncio.sleep(_RETRY_US / 1e6)
            else:
                return

    async def _find_place(self) -> None:
        """Find the new place of a USB device whose address has a place."""
        if self._others is None:
            return
        with suppress(PortRefused):  # the next retry reports it
            came = await in_thread(usb_places, self._address) - self._others
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


SHARE = 0.12
"""Of all frames, in each direction."""


class NoisyCable:
    """Noise that the tester itself simulates, so that it is the same at every port.

    It changes whole frames, each with the same probability: a bit flips, the frame is dropped, is
    sent twice, or loses its end and merges with the next one.
    """

    def __init__(self, rng: random.Random, share: float = SHARE) -> None:
        self._rng = rng
        self._share = share
        self._partial = b""
        self.hits = 0
        self._changes: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            lambda _: b"",
            lambda frame: frame * 2,
            self.splice,
        )

    def to_device(self, frame: bytes) -> bytes:
        """What the device receives of this frame."""
        return self.distort(frame)

    def to_tester(self, data: bytes) -> bytes:
        """What the tester receives of these bytes. An incomplete frame is buffered."""
        *frames, self._partial = (self._partial + data).split(b"\0")
        return b"".join(self.distort(frame + b"\0") for frame in frames)

    def take_partial(self) -> bytes:
        """Empty the buffer and return the incomplete frame."""
        partial, self._partial = self._partial, b""
        return partial

    def distort(self, frame: bytes) -> bytes:
        if len(frame) < 2 or self._rng.random() >= self._share:
            return frame
        self.hits += 1
        return self._rng.choice(self._changes)(frame)

    def _flip(self, frame: bytes) -> bytes:
        at = self._rng.randrange(len(frame))
        return frame[:at] + bytes((frame[at] ^ 1 << self._rng.randrange(8),)) + frame[at + 1 :]

    def splice(self, frame: bytes) -> bytes:
        """The frame without its end."""
        return frame[: self._rng.randrange(1, len(frame))]
