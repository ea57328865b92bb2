"""Port on the bulk endpoints of a USB device.

pyusb blocks in every call, so the device has an owner thread: it finds, claims and reads it, and
releases it in the end. Results are passed to the event loop. A second thread only writes to the
OUT endpoint. With one thread for both, a write waits until a read times out: with a timeout of
2 ms that is 1.1 ms for each acknowledgement and 500 cancelled transfers a second; a second thread
takes 0.07 ms and cancels none. Transfers on different endpoints are independent in libusb, and
the owner joins the writer before it releases the device.
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
from drivers.ports.port import (
    OWN_BACKEND,
    WRITE_BOUND,
    Address,
    Port,
    PortListener,
    PortLost,
    PortRefused,
    Transport,
    UsbPlace,
    no_thread,
)
from drivers.ports.usb_discovery import DEVICE_ERRORS, Unit

READ_MS: Final = 100
"""Timeout of a read, and so the longest time until the owner thread notices that it must stop."""
WRITE_MS: Final = 250
"""Timeout of a write, after which it is retried unless the port is closing."""
READ_PACKETS: Final = 16
"""Size of a read buffer in packets. A part of a packet would be an overflow."""
DELIVERY_SIZE: Final = 4096
"""Bytes that are delivered in one turn of the event loop, so that a device that sends without
pause does not block the others."""
READ_BOUND: Final = 256 * 1024
"""Limit of bytes that wait for the event loop. Beyond it the device is not read."""
WRITE_SIZE: Final = 4096
"""Limit of bytes of one transfer."""
CLOSE_SECONDS: Final = 3.0
"""Timeout of close() for the threads. Later the kernel blocks them; they end on their own."""


async def open_usb(
    serial: str,
    listener: PortListener,
    *,
    backend: str = OWN_BACKEND,
    place: UsbPlace | None = None,
) -> Port:
    """Open the port. `place` selects one of several with this number. Raises PortRefused."""
    where = Address(Transport.USB, serial, backend, place)
    port = UsbPort(where, listener, asyncio.get_running_loop())
    port.start()
    await port.opened()
    return port


def _start(thread: threading.Thread, where: Address) -> None:
    try:
        thread.start()
    except RuntimeError as problem:
        raise no_thread(str(where), problem) from None


class UsbPort:
    """Port that open_usb() returns. Event loop only, unless a comment names a thread."""

    def __init__(
        self, where: Address, listener: PortListener, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._where = where
        self._serial = where.where
        self._listener = listener
        self._loop = loop
        self._opened: asyncio.Future[None] = loop.create_future()
        self._gone = loop.create_future()
        self._closed = False
        # Shared by the threads, under one lock.
        self._changed = threading.Condition()
        self._stop = False
        self._why: PortLost | None = None
        self._to_write = bytearray()
        self._to_deliver = bytearray()
        """If it is not empty, a call of _drain() is scheduled."""
        self._owner = threading.Thread(target=self._own, name=f"usb {self._serial}", daemon=True)

    @property
    def name(self) -> str:
        return f"{self._serial}{self._where.where_exactly}"

    def start(self) -> None:
        """Start to open it, once. Raises PortRefused if no thread can be started."""
        _start(self._owner, self._where)

    async def opened(self) -> None:
        """Wait until the port is open. Raises PortRefused."""
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
            data = bytes(self._to_deliver[:DELIVERY_SIZE])
            del self._to_deliver[:DELIVERY_SIZE]
            if self._to_deliver:
                self._loop.call_soon(self._drain)
            self._changed.notify_all()
        if data and not self._closed:
            self._listener.received(data)

    def _owner_ended(self, refused: PortRefused | None) -> None:
        """The owner thread has ended."""
        if self._to_deliver and not self._closed:
            self._loop.call_soon(self._owner_ended, refused)  # those bytes are delivered first
            return
        self._owner.join()
        self._gone.set_result(None)
        if not self._opened.done():
            self._opened.set_exception(refused or PortRefused(f"{self._where}: closed"))
        elif self._why is not None and not self._closed:
            self._listener.lost(self._why)

    def _set_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    # --- any thread ---------------------------------------------------------------------------

    def _end(self, why: PortLost | None) -> None:
        """Stop the threads. The first cause is kept."""
        with self._changed:
            if not self._stop:
                self._stop = True
                self._why = why
            self._changed.notify_all()

    def _call_on_loop(self, callback: Callable[..., None], *args: object) -> None:
        """Call this on the event loop. If the loop is closed, the port ends."""
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
                usb_discovery.release(unit.device)
        except PortRefused as problem:
            refused = problem
        except DEVICE_ERRORS as problem:
            refused = usb_discovery.refused(str(self._where), problem)
        finally:
            # The last call: the device is released when the listener learns of it.
            self._call_on_loop(self._owner_ended, refused)

    def _serve(self, unit: Unit) -> None:
        writer = threading.Thread(
            target=self._write_on, args=(unit,), name=f"usb {self._serial} out", daemon=True
        )
        _start(writer, self._where)
        self._call_on_loop(self._set_opened)
        try:
            self._read_on(unit)
        except DEVICE_ERRORS as problem:
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
            self._changed.wait_for(lambda: self._stop or len(self._to_deliver) < READ_BOUND)
            first = not self._to_deliver
            self._to_deliver += data
        if first:
            self._call_on_loop(self._drain)

    # --- the writing thread -------------------------------------------------------------------

    def _write_on(self, unit: Unit) -> None:
        try:
            while data := self._next():
                self._send(unit, data)
        except DEVICE_ERRORS as problem:
            self._end(_lost(problem))

    def _next(self) -> bytes:
        """The next bytes to write; none when the port ends."""
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
            # Without an empty packet the device could not detect the end of the transfer.
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
    """Number of accepted bytes; None on timeout."""
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
    # When unplugged, a pending read fails with EIO, ENODEV or EPIPE, by host controller.
    if problem.errno in (errno.EIO, errno.ENODEV, errno.EPIPE, errno.ENOENT, errno.ESHUTDOWN):
        return PortLost("it was unplugged")
    return PortLost(f"it failed: {problem.strerror or problem}")
