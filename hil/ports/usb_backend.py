"""A backend for pyusb whose bus is a directory: `backend("run/usb")` finds its devices.

    usb.core.find(backend=backend("run/usb"), custom_match=lambda device: ...)

It behaves like pyusb's backend for libusb 1.0: the same errors and numbers, timeouts that return
what was moved before, transfers of any length. It is thread-safe; the two directions and endpoint 0
of a handle do not block each other.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Final, NoReturn

import msgspec
import usb.backend
from usb.core import USBError, USBTimeoutError

from hil.ports import unix_sockets
from hil.ports.usb_messages import (
    CHUNK,
    END_IN,
    END_OUT,
    ERRNO,
    MAX_MESSAGE_BYTES,
    SOCKET_PATTERN,
    TEXT,
    TOKEN,
    Descriptors,
    Op,
    UsbMessage,
    UsbStatus,
    configuration_descriptor,
    decode,
    device_descriptor,
    endpoint_descriptor,
    interface_descriptor,
    setup_packet,
)

_TIMEOUT: Final = 2.0
"""Timeout in seconds of requests that the device answers at once."""
_ENDS: Final = (END_IN, END_OUT)


def backend(argument: str) -> SimBackend:
    """`argument`: the directory. A missing one is a bus without devices."""
    bus = Path(argument)
    if not argument or (bus.exists() and not bus.is_dir()):
        raise NotADirectoryError(f"{argument!r} is no directory; allowed: the directory of a bus")
    return SimBackend(bus)


def _check(status: int) -> None:
    if status < 0:
        _fail(UsbStatus(status))


def _fail(known: UsbStatus) -> NoReturn:
    """Raise the exception of pyusb for this error code of libusb."""
    if known is UsbStatus.NOT_SUPPORTED:
        raise NotImplementedError(TEXT[known])
    kind = USBTimeoutError if known is UsbStatus.TIMEOUT else USBError
    raise kind(TEXT[known], int(known), ERRNO[known])


class _Pipe:
    """One connection to a device, for one request at a time; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.settimeout(_TIMEOUT)
        try:
            unix_sockets.connect(self._sock, path)
        except OSError as problem:
            self._sock.close()
            denied = isinstance(problem, PermissionError)
            _fail(UsbStatus.ACCESS if denied else UsbStatus.NO_DEVICE)

    def close(self) -> None:
        with suppress(OSError):  # disconnected already
            self._sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for a response
        with self._lock:
            self._sock.close()

    def ask(self, op: Op, arg: int = 0, data: bytes = b"") -> UsbMessage:
        """Send a request that is answered at once. Raises USBError."""
        with self._lock:
            number = next(self._numbers)
            self._send(UsbMessage(op, number, arg, 0, data))
            answer = self._wait(number, _TIMEOUT)
        if answer is None:
            _fail(UsbStatus.TIMEOUT)
        _check(answer.arg)
        return answer

    def transfer(self, op: Op, arg: int, data: bytes, until: float | None) -> UsbMessage:
        """Run a transfer until a time, then cancel it. Returns its status and what it moved."""
        with self._lock:
            number = next(self._numbers)
            self._send(UsbMessage(op, number, arg, 0, data))
            answer = self._wait(number, _left(until))
            if answer is None:
                self._send(UsbMessage(Op.CANCEL, number))
                answer = self._wait(number, _TIMEOUT)
        if answer is None:  # the device's process hangs
            _fail(UsbStatus.IO)
        return answer

    def _send(self, message: UsbMessage) -> None:
        try:
            self._sock.settimeout(_TIMEOUT)
            self._sock.send(message.encode())
        except OSError:
            _fail(UsbStatus.NO_DEVICE)

    def _wait(self, number: int, seconds: float | None) -> UsbMessage | None:
        """The response to this request; None on timeout."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _left(until)
            # Zero would make the socket non-blocking; a response that is there is still read.
            self._sock.settimeout(None if left is None else max(left, 1e-6))
            try:
                raw = self._sock.recv(MAX_MESSAGE_BYTES)
            except TimeoutError:
                return None
            except OSError:
                raw = b""
            if not raw:
                _fail(UsbStatus.NO_DEVICE)
            answer = decode(raw)
            if answer.number == number:
                return answer


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _until(timeout_ms: int) -> float | None:
    """The deadline; None, which is no limit, for a timeout of 0, as in libusb."""
    return time.monotonic() + timeout_ms / 1000 if timeout_ms else None


class _FoundDevice(msgspec.Struct, frozen=True):
    """A device on the bus."""

    path: Path
    descriptors: Descriptors


class _Handle:
    """An opened device."""

    def __init__(self, found: _FoundDevice) -> None:
        self._path = found.path
        self._token = os.urandom(TOKEN)
        self._ends: dict[int, _Pipe] = {}
        self.control = self._open(0)

    def _open(self, end: int) -> _Pipe:
        pipe = _Pipe(self._path)
        try:
            pipe.ask(Op.OPEN, end, self._token)
        except USBError:
            pipe.close()
            raise
        return pipe

    def claim(self, interface: int) -> None:
        self.control.ask(Op.CLAIM, interface)
        for end in _ENDS:
            if end not in self._ends:
                self._ends[end] = self._open(end)

    def release(self, interface: int) -> None:
        self._close_ends()
        self.control.ask(Op.RELEASE, interface)

    def end(self, address: int) -> _Pipe:
        pipe = self._ends.get(address)
        if pipe is None:
            _fail(UsbStatus.NOT_FOUND)
        return pipe

    def close(self) -> None:
        self._close_ends()
        self.control.close()

    def _close_ends(self) -> None:
        while self._ends:
            self._ends.popitem()[1].close()


class SimBackend(usb.backend.IBackend):  # type: ignore[misc]  # pyusb has no types
    """Implements pyusb's interface, with its names."""

    def __init__(self, bus: Path) -> None:
        self._bus = bus

    # --- devices ----------------------------------------------------------------------------------

    def enumerate_devices(self) -> Iterator[_FoundDevice]:
        for path in sorted(self._bus.glob(SOCKET_PATTERN)):
            # It may be unplugged just now, or left by a killed device.
            with suppress(USBError):
                yield _FoundDevice(path, _describe(path))

    def get_parent(self, dev: _FoundDevice) -> None:
        return None

    def get_device_descriptor(self, dev: _FoundDevice) -> SimpleNamespace:
        return device_descriptor(dev.descriptors)

    def get_configuration_descriptor(self, dev: _FoundDevice, config: int) -> SimpleNamespace:
        return configuration_descriptor(config)

    def get_interface_descriptor(
        self, dev: _FoundDevice, intf: int, alt: int, config: int
    ) -> SimpleNamespace:
        configuration_descriptor(config)
        return interface_descriptor(intf, alt)

    def get_endpoint_descriptor(
        self, dev: _FoundDevice, ep: int, intf: int, alt: int, config: int
    ) -> SimpleNamespace:
        self.get_interface_descriptor(dev, intf, alt, config)
        return endpoint_descriptor(ep)

    # --- handles ----------------------------------------------------------------------------------

    def open_device(self, dev: _FoundDevice) -> _Handle:
        return _Handle(dev)

    def close_device(self, dev_handle: _Handle) -> None:
        dev_handle.close()

    def set_configuration(self, dev_handle: _Handle, config_value: int) -> None:
        data = setup_packet(0x00, 9, config_value, 0, 0)
        try:
            dev_handle.control.ask(Op.CONTROL, 0, data)
        except USBError as problem:
            if problem.backend_error_code == UsbStatus.PIPE:  # no such configuration
                _fail(UsbStatus.NOT_FOUND)
            raise

    def get_configuration(self, dev_handle: _Handle) -> int:
        data = setup_packet(0x80, 8, 0, 0, 1)
        return dev_handle.control.ask(Op.CONTROL, 0, data).data[0]

    def set_interface_altsetting(self, dev_handle: _Handle, intf: int, altsetting: int) -> None:
        dev_handle.end(_ENDS[0])  # it must be claimed
        if intf or altsetting:
            _fail(UsbStatus.NOT_FOUND)

    def claim_interface(self, dev_handle: _Handle, intf: int) -> None:
        dev_handle.claim(intf)

    def release_interface(self, dev_handle: _Handle, intf: int) -> None:
        dev_handle.release(intf)

    def clear_halt(self, dev_handle: _Handle, ep: int) -> None:
        dev_handle.control.ask(Op.CLEAR_HALT, ep)

    def reset_device(self, dev_handle: _Handle) -> None:
        dev_handle.control.ask(Op.RESET)

    def is_kernel_driver_active(self, dev_handle: _Handle, intf: int) -> bool:
        return False

    def detach_kernel_driver(self, dev_handle: _Handle, intf: int) -> None:
        _fail(UsbStatus.NOT_FOUND)

    attach_kernel_driver = detach_kernel_driver

    # --- transfers --------------------------------------------------------------------------------

    def bulk_write(
        self, dev_handle: _Handle, ep: int, intf: int, data: array[int], timeout: int
    ) -> int:
        pipe, until, raw, done = dev_handle.end(ep), _until(timeout), data.tobytes(), 0
        while True:
            chunk = raw[done : done + CHUNK]
            answer = pipe.transfer(Op.OUT, 0, chunk, until)
            done += answer.count
            if answer.arg != UsbStatus.OK or done >= len(raw):
                return _moved(answer.arg, done)

    def bulk_read(
        self, dev_handle: _Handle, ep: int, intf: int, buff: array[int], timeout: int
    ) -> int:
        pipe, until = dev_handle.end(ep), _until(timeout)
        size, done = len(buff) * buff.itemsize, 0
        while True:
            wanted = min(CHUNK, size - done)
            answer = pipe.transfer(Op.IN, wanted, b"", until)
            with memoryview(buff).cast("B") as room:
                room[done : done + len(answer.data)] = answer.data
            done += len(answer.data)
            if answer.arg != UsbStatus.OK or len(answer.data) < wanted or done == size:
                return _moved(answer.arg, done)

    def ctrl_transfer(
        self,
        dev_handle: _Handle,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array[int],
        timeout: int,
    ) -> int:
        size = len(data) * data.itemsize
        asked = setup_packet(bmRequestType, bRequest, wValue, wIndex, size)
        if not bmRequestType & 0x80:
            dev_handle.control.ask(Op.CONTROL, 0, asked + data.tobytes())
            return size
        answer = dev_handle.control.ask(Op.CONTROL, 0, asked).data
        with memoryview(data).cast("B") as room:
            room[: len(answer)] = answer
        return len(answer)


def _moved(status: int, done: int) -> int:
    """Raise the error, except a timeout after which something was moved, as pyusb does."""
    if not (done and status == UsbStatus.TIMEOUT):
        _check(status)
    return done


def _describe(path: Path) -> Descriptors:
    pipe = _Pipe(path)
    try:
        return msgspec.json.decode(pipe.ask(Op.DESCRIBE).data, type=Descriptors)
    finally:
        pipe.close()
