"""Messages between a device on the simulated bus and its hosts, over a unix socket.

A bus is a directory. A plugged device is a socket in it, `device-NNN`, with its address NNN, of
type SOCK_SEQPACKET, which keeps message boundaries. Each request of a host is answered exactly
once, in any order: transfers when they are done, other requests at once. A transfer that is
cancelled is answered with what it has moved so far.
"""

from __future__ import annotations

import errno
import struct
from enum import IntEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

PACKET: Final = 64
"""Bulk packets of a full-speed device."""
END_IN: Final = 0x81
END_OUT: Final = 0x01
CHUNK: Final = 16_384
"""Bytes of one request: longer transfers are split, as libusb does."""
MAX_MESSAGE_BYTES: Final = CHUNK + 64
"""Limit of a message, in bytes."""
SOCKET_NAME: Final = "device-{:03d}"
SOCKET_PATTERN: Final = "device-[0-9][0-9][0-9]"
TOKEN: Final = 16
"""Bytes of the token that all connections of an opened handle have in common."""


class Op(IntEnum):
    """The type of a message."""

    DONE = 0
    """A response: status, number of bytes moved, and the data read."""
    DESCRIBE = 1
    """The descriptors, as JSON."""
    OPEN = 2
    """Assign this connection to the handle with the token."""
    CLAIM = 3
    RELEASE = 4
    CONTROL = 5
    """A transfer at endpoint 0: the setup packet and the data to the device."""
    CLEAR_HALT = 6
    RESET = 7
    OUT = 8
    IN = 9
    """`arg`: the size of the buffer."""
    CANCEL = 10
    """`number`: the request to cancel."""


class UsbStatus(IntEnum):
    """The error codes of libusb."""

    OK = 0
    IO = -1
    INVALID = -2
    ACCESS = -3
    NO_DEVICE = -4
    NOT_FOUND = -5
    BUSY = -6
    TIMEOUT = -7
    OVERFLOW = -8
    PIPE = -9
    NOT_SUPPORTED = -12


ERRNO: Final = {
    UsbStatus.IO: errno.EIO,
    UsbStatus.INVALID: errno.EINVAL,
    UsbStatus.ACCESS: errno.EACCES,
    UsbStatus.NO_DEVICE: errno.ENODEV,
    UsbStatus.NOT_FOUND: errno.ENOENT,
    UsbStatus.BUSY: errno.EBUSY,
    UsbStatus.TIMEOUT: errno.ETIMEDOUT,
    UsbStatus.OVERFLOW: errno.EOVERFLOW,
    UsbStatus.PIPE: errno.EPIPE,
    UsbStatus.NOT_SUPPORTED: errno.ENOSYS,
}
TEXT: Final = {
    UsbStatus.IO: "Input/Output Error",
    UsbStatus.INVALID: "Invalid parameter",
    UsbStatus.ACCESS: "Access denied (insufficient permissions)",
    UsbStatus.NO_DEVICE: "No such device (it may have been disconnected)",
    UsbStatus.NOT_FOUND: "Entity not found",
    UsbStatus.BUSY: "Resource busy",
    UsbStatus.TIMEOUT: "Operation timed out",
    UsbStatus.OVERFLOW: "Overflow",
    UsbStatus.PIPE: "Pipe error",
    UsbStatus.NOT_SUPPORTED: "Operation not supported or unimplemented on this platform",
}
"""The texts of libusb."""


class Descriptors(Struct, frozen=True):
    """The fields of a descriptor that differ between devices."""

    address: int
    port: int
    """Number of the hub's port."""
    maker: str
    model: str
    serial: str


_HEAD: Final = struct.Struct("<BIiI")


class UsbMessage(Struct, frozen=True):
    op: Op
    number: int
    """Of the request; its response has the same."""
    arg: int = 0
    """The status, in a response."""
    count: int = 0
    """In the response to OUT: the number of bytes written."""
    data: bytes = b""

    def encode(self) -> bytes:
        return _HEAD.pack(self.op, self.number, self.arg, self.count) + self.data


def decode(raw: bytes) -> UsbMessage:
    """Raises ValueError if it is no message."""
    if len(raw) < _HEAD.size:
        raise ValueError(f"a message of {len(raw)} bytes")
    op, number, arg, count = _HEAD.unpack_from(raw)
    return UsbMessage(Op(op), number, arg, count, raw[_HEAD.size :])


def socket_path(bus: Path, address: int) -> Path:
    return bus / SOCKET_NAME.format(address)
