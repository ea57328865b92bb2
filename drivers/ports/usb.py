"""A USB device's bulk endpoints as a port.

pyusb waits in every call, so the device has an owner thread: it finds, claims, reads, and in the
end lets go; whatever it has to say goes to the event loop. A second thread does nothing but write
to the OUT endpoint. With one thread for both, a write waits until a read times out: with 2 ms of
patience that is 1.1 ms for each acknowledgement and 500 cancelled transfers a second; a second
thread takes 0.07 ms and cancels none. Transfers on different endpoints do not meet in libusb, and
the owner ends the writer before it lets go of the device.
"""

from __future__ import annotations

import asyncio
import errno
import threading
from array import array
from collections.abc import Callable
from typing import Any, Final

import usb.core

from drivers.ports import usb_discovery
from drivers.ports.address import OWN_BACKEND, Address, Transport, UsbPlace
from drivers.ports.port import WRITE_BOUND, Port, PortListener, PortLost, PortRefused, no_thread
from drivers.ports.usb_discovery import ODD, Unit

READ_MS: Final = 100
"""How long a read waits: how long it takes at most until the owner sees that it should end."""
WRITE_MS: Final = 250
"""How long a write waits before it looks whether it should end; then it goes on."""
READ_PACKETS: Final = 16
"""A read's size in packets. Not a whole number of them would be an overflow."""
HEAR_SIZE: Final = 4096
"""Most bytes that are handed over in one turn of the event loop: a device that talks without end
shall stall no other."""
READ_BOUND: Final = 256 * 1024
"""Bytes that may wait for the event loop. When it is that far behind, the device has to wait."""
WRITE_SIZE: Final = 4096
"""Most bytes of one transfer."""
CLOSE_SECONDS: Final = 3.0
"""How long close() waits for the threads. Past it the kernel holds them; they end by themselves."""


async def open_usb(
    serial: str, ears: PortListener, *, backend: str = OWN_BACKEND, place: UsbPlace | None = None
) -> Port:
    """The open port, or PortRefused. `place` says which of several with this number is meant."""
    where = Address(Transport.USB, serial, backend, place)
    port = UsbPort(where, ears, asyncio.get_running_loop())
    port.start()
    await port.opened()
    return port


def _start(thread: threading.Thread, where: Address) -> None:
    try:
        thread.start()
    except RuntimeError as problem:
        raise no_thread(str(where), problem) from None


class UsbPort:
    """What open_usb returns. Methods without a word about threads run on the event loop."""

    def __init__(self, where: Address, ears: PortListener, loop: asyncio.AbstractEventLoop) -> None:
        self._where = where
        self._serial = where.where
        self._ears = ears
        self._loop = loop
        self._opened: asyncio.Future[None] = loop.create_future()
        self._gone = loop.create_future()
        self._closed = False
        # What the threads share, all under one lock.
        self._changed = threading.Condition()
        self._stop = False
        self._why: PortLost | None = None
        self._to_write = bytearray()
        self._to_hear = bytearray()
        """Where there is something in it, the loop has been asked to _drain()."""
        self._owner = threading.Thread(target=self._own, name=f"usb {self._serial}", daemon=True)

    @property
    def name(self) -> str:
        return f"{self._serial}{self._where.where_exactly}"

    def start(self) -> None:
        """Begin to open it, once; PortRefused if that cannot even be begun."""
        _start(self._owner, self._where)

    async def opened(self) -> None:
        """Wait until the port is open, or PortRefused."""
        try:
            await self._opened
        except asyncio.CancelledError:
            self._end(None)
            raise

    def write(self, data: bytes) -> None:
        with self._changed:
            if self._stop or not data:
                return
            if len(self._to_write) + len(data) <= WRITE_BOUND:
                self._to_write += data
                self._changed.notify_all()
                return
        self._end(PortLost(f"it does not take bytes: {WRITE_BOUND} wait"))

    async def close(self) -> None:
        self._closed = True
        self._end(None)
        await asyncio.wait((self._gone,), timeout=CLOSE_SECONDS)

    def _drain(self) -> None:
        with self._changed:
            data = bytes(self._to_hear[:HEAR_SIZE])
            del self._to_hear[:HEAR_SIZE]
            if self._to_hear:
                self._loop.call_soon(self._drain)
            self._changed.notify_all()
        if data and not self._closed:
            self._ears.heard(data)

    def _over(self, refused: PortRefused | None) -> None:
        """The last thing that the owner thread says."""
        if self._to_hear and not self._closed:
            self._loop.call_soon(self._over, refused)  # that is heard first
            return
        self._owner.join()
        self._gone.set_result(None)
        if not self._opened.done():
            self._opened.set_exception(refused or PortRefused(f"{self._where}: closed"))
        elif self._why is not None and not self._closed:
            self._ears.lost(self._why)

    def _is_open(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    # --- any thread ---------------------------------------------------------------------------

    def _end(self, why: PortLost | None) -> None:
        """Make the threads end. The first cause is kept."""
        with self._changed:
            if not self._stop:
                self._stop = True
                self._why = why
            self._changed.notify_all()

    def _say(self, callback: Callable[..., None], *args: object) -> None:
        """Have the event loop call this. Where the loop is closed nobody listens any more."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            self._end(None)

    # --- the owner thread ---------------------------------------------------------------------

    def _own(self) -> None:
        refused = None
        try:
            backend = usb_discovery.load_backend(self._where.backend)
            unit = usb_discovery.find(self._where, backend)
            try:
                usb_discovery.claim(unit, str(self._where))
                self._serve(unit)
            finally:
                usb_discovery.let_go(unit.device)
        except PortRefused as problem:
            refused = problem
        except ODD as problem:
            refused = usb_discovery.refused(str(self._where), problem)
        finally:
            # Said last of all: whoever hears of it finds the device free.
            self._say(self._over, refused)

    def _serve(self, unit: Unit) -> None:
        writer = threading.Thread(
            target=self._write_on, args=(unit,), name=f"usb {self._serial} out", daemon=True
        )
        _start(writer, self._where)
        self._say(self._is_open)
        try:
            self._read_on(unit)
        except ODD as problem:
            self._end(_lost(problem))
        finally:
            self._end(None)
            writer.join()

    def _read_on(self, unit: Unit) -> None:
        buffer = array("B", bytes(READ_PACKETS * unit.in_packet))
        while not self._stop:
            size = _read(unit, buffer)
            if size:  # an empty transfer only ends one that filled its packets
                self._pass_on(buffer[:size].tobytes())

    def _pass_on(self, data: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stop or len(self._to_hear) < READ_BOUND)
            first = not self._to_hear
            self._to_hear += data
        if first:
            self._say(self._drain)

    # --- the writing thread -------------------------------------------------------------------

    def _write_on(self, unit: Unit) -> None:
        try:
            while data := self._next():
                self._send(unit, data)
        except ODD as problem:
            self._end(_lost(problem))

    def _next(self) -> bytes:
        """What is to be written next; nothing when the port ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._stop or self._to_write)
            if self._stop:
                return b""
            data = bytes(self._to_write[:WRITE_SIZE])
            del self._to_write[: len(data)]
            return data

    def _send(self, unit: Unit, data: bytes) -> None:
        rest = data
        while rest and not self._stop:
            rest = rest[_write(unit, rest) or 0 :]
        if len(data) % unit.packet == 0:
            # Without an empty packet the device could not see that the transfer has ended.
            while not self._stop and _write(unit, b"") is None:
                pass


def _read(unit: Unit, buffer: Any) -> int:
    try:
        return int(unit.device.read(unit.into, buffer, READ_MS))
    except usb.core.USBError as problem:
        if _timed_out(problem):
            return 0
        raise


def _write(unit: Unit, data: bytes) -> int | None:
    """How many bytes were taken; None when none was within the time."""
    try:
        return int(unit.device.write(unit.out, data, WRITE_MS))
    except usb.core.USBError as problem:
        if _timed_out(problem):
            return None
        raise


def _timed_out(problem: OSError) -> bool:
    return isinstance(problem, usb.core.USBTimeoutError) or problem.errno == errno.ETIMEDOUT


def _lost(problem: Exception) -> PortLost:
    if not isinstance(problem, OSError):
        return PortLost(f"it failed: {problem}")
    # At unplug a read that waits gives EIO on one host controller, ENODEV on another; EPIPE too.
    if problem.errno in (errno.EIO, errno.ENODEV, errno.EPIPE, errno.ENOENT, errno.ESHUTDOWN):
        return PortLost("it was unplugged")
    return PortLost(f"it failed: {problem.strerror or problem}")
