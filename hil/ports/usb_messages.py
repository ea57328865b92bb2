"""What a device on the simulated bus and its hosts say to each other over a unix socket.

A bus is a directory. A plugged device is a socket in it, `device-NNN`, NNN being its address; it is
of type SOCK_SEQPACKET, so that each message arrives whole. A host asks, and each question is
answered once, in any order: transfers when they are done, the rest at once. A transfer that is
given up is answered with what it has moved so far.
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
"""A longer transfer is made of several questions, as libusb does."""
MAX_MESSAGE_BYTES: Final = CHUNK + 64
"""No message is longer."""
SOCKET_NAME: Final = "device-{:03d}"
SOCKET_PATTERN: Final = "device-[0-9][0-9][0-9]"
TOKEN: Final = 16
"""Bytes that name one opened handle on all its connections."""


class Op(IntEnum):
    """What a message is."""

    DONE = 0
    """An answer: status, how much was moved, and what was read."""
    DESCRIBE = 1
    """The descriptors, as JSON."""
    OPEN = 2
    """This connection belongs to the handle of that token."""
    CLAIM = 3
    RELEASE = 4
    CONTROL = 5
    """A transfer at endpoint 0: the setup packet and what goes out."""
    CLEAR_HALT = 6
    RESET = 7
    OUT = 8
    IN = 9
    """`arg`: how many bytes at most."""
    GIVE_UP = 10
    """`number`: the question that is not waited for any longer."""


class UsbStatus(IntEnum):
    """How it went, in the numbers of libusb."""

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
"""The words that libusb has for them."""


class Descriptors(Struct, frozen=True):
    """What a device says of itself; all else is the same for every one."""

    address: int
    port: int
    """Number of the hub's port that it is plugged into."""
    maker: str
    model: str
    serial: str


_HEAD: Final = struct.Struct("<BIiI")


class UsbMessage(Struct, frozen=True):
    op: Op
    number: int
    """Of the question; an answer has the same."""
    arg: int = 0
    """Status of an answer."""
    count: int = 0
    """Answer to OUT: how many bytes went out."""
    data: bytes = b""

    def encode(self) -> bytes:
        return _HEAD.pack(self.op, self.number, self.arg, self.count) + self.data


def decode(raw: bytes) -> UsbMessage:
    """ValueError if it is none."""
    if len(raw) < _HEAD.size:
        raise ValueError(f"a message of {len(raw)} bytes")
    op, number, arg, count = _HEAD.unpack_from(raw)
    return UsbMessage(Op(op), number, arg, count, raw[_HEAD.size :])


def socket_path(bus: Path, address: int) -> Path:
    return bus / SOCKET_NAME.format(address)
