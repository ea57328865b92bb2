"""Messages and descriptors between a device on the simulated bus and its hosts.

A bus is a directory. A plugged device is a socket in it, `device-NNN`, with its address NNN, of
type SOCK_SEQPACKET, which keeps message boundaries. Each request of a host is answered exactly
once, in any order: transfers when they are done, other requests at once. A transfer that is
cancelled is answered with what it has moved so far.

The descriptors follow the Transport section of PROTOCOL.md: one vendor interface of class 0xFF,
subclass 0x54, protocol 0x01, a bulk endpoint each way, and the serial number of HELLO_RSP as a
string. Each table is used twice: as bytes for control transfers, and as fields for pyusb.
"""

from __future__ import annotations

import errno
import struct
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
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


# --- descriptors ----------------------------------------------------------------------------------

VENDOR: Final = 0x1209
PRODUCT: Final = 0x0001
"""The vendor and product id that pid.codes reserves for tests."""
INTERFACE_CLASS: Final = (0xFF, 0x54, 0x01)
CONFIGURATION: Final = 1
BUS: Final = 1
_LANGUAGE: Final = 0x0409
_FULL_SPEED: Final = 2
_STRINGS: Final = ("maker", "model", "serial")
"""String descriptors 1 to 3."""

_DEVICE_FIELDS: Final = (
    ("bLength", "B", 18),
    ("bDescriptorType", "B", 1),
    ("bcdUSB", "H", 0x0200),
    ("bDeviceClass", "B", 0),
    ("bDeviceSubClass", "B", 0),
    ("bDeviceProtocol", "B", 0),
    ("bMaxPacketSize0", "B", PACKET),
    ("idVendor", "H", VENDOR),
    ("idProduct", "H", PRODUCT),
    ("bcdDevice", "H", 0x0100),
    ("iManufacturer", "B", 1),
    ("iProduct", "B", 2),
    ("iSerialNumber", "B", 3),
    ("bNumConfigurations", "B", 1),
)
_CONFIGURATION_FIELDS: Final = (
    ("bLength", "B", 9),
    ("bDescriptorType", "B", 2),
    ("wTotalLength", "H", 32),
    ("bNumInterfaces", "B", 1),
    ("bConfigurationValue", "B", CONFIGURATION),
    ("iConfiguration", "B", 0),
    ("bmAttributes", "B", 0xC0),  # self-powered
    ("bMaxPower", "B", 0),
)
_INTERFACE_FIELDS: Final = (
    ("bLength", "B", 9),
    ("bDescriptorType", "B", 4),
    ("bInterfaceNumber", "B", 0),
    ("bAlternateSetting", "B", 0),
    ("bNumEndpoints", "B", 2),
    ("bInterfaceClass", "B", INTERFACE_CLASS[0]),
    ("bInterfaceSubClass", "B", INTERFACE_CLASS[1]),
    ("bInterfaceProtocol", "B", INTERFACE_CLASS[2]),
    ("iInterface", "B", 0),
)


def _endpoint_fields(address: int) -> tuple[tuple[str, str, int], ...]:
    return (
        ("bLength", "B", 7),
        ("bDescriptorType", "B", 5),
        ("bEndpointAddress", "B", address),
        ("bmAttributes", "B", 2),  # bulk
        ("wMaxPacketSize", "H", PACKET),
        ("bInterval", "B", 0),
    )


_ENDPOINTS: Final = (_endpoint_fields(END_OUT), _endpoint_fields(END_IN))


def _fields(fields: tuple[tuple[str, str, int], ...], **more: object) -> SimpleNamespace:
    return SimpleNamespace(**{name: value for name, _, value in fields}, **more)


def _raw(fields: tuple[tuple[str, str, int], ...]) -> bytes:
    return b"".join(struct.pack(f"<{form}", value) for _, form, value in fields)


# --- for pyusb ------------------------------------------------------------------------------------


def device_descriptor(of: Descriptors) -> SimpleNamespace:
    return _fields(
        _DEVICE_FIELDS,
        bus=BUS,
        address=of.address,
        speed=_FULL_SPEED,
        port_number=of.port,
        port_numbers=(of.port,),
    )


def configuration_descriptor(index: int) -> SimpleNamespace:
    if index:
        raise IndexError(f"Invalid configuration index {index}")
    return _fields(_CONFIGURATION_FIELDS, extra_descriptors=[])


def interface_descriptor(index: int, alternate: int) -> SimpleNamespace:
    if index:
        raise IndexError(f"Invalid interface index {index}")
    if alternate:
        raise IndexError(f"Invalid alternate setting index {alternate}")
    return _fields(_INTERFACE_FIELDS, extra_descriptors=[])


def endpoint_descriptor(index: int) -> SimpleNamespace:
    if not 0 <= index < len(_ENDPOINTS):
        raise IndexError(f"Invalid endpoint index {index}")
    return _fields(_ENDPOINTS[index], bRefresh=0, bSynchAddress=0, extra_descriptors=[])


# --- for control transfers ------------------------------------------------------------------------

_SETUP: Final = struct.Struct("<BBHHH")
_IN_STANDARD: Final = 0x80
_OUT_STANDARD: Final = 0x00
_GET_DESCRIPTOR, _GET_CONFIGURATION, _SET_CONFIGURATION = 6, 8, 9


def setup_packet(request_type: int, request: int, value: int, index: int, length: int) -> bytes:
    """The setup packet of a control transfer."""
    return _SETUP.pack(request_type, request, value, index, length)


def control_answer(of: Descriptors, data: bytes) -> tuple[UsbStatus, bytes]:
    """The response of endpoint 0; it stalls on unknown requests."""
    if len(data) < _SETUP.size:
        return UsbStatus.INVALID, b""
    request_type, request, value, _, length = _SETUP.unpack_from(data)
    answer: bytes | None = None
    if (request_type, request) == (_IN_STANDARD, _GET_DESCRIPTOR):
        answer = _descriptor(of, value >> 8, value & 0xFF)
    elif (request_type, request) == (_IN_STANDARD, _GET_CONFIGURATION):
        answer = bytes((CONFIGURATION,))
    elif (request_type, request, value) == (_OUT_STANDARD, _SET_CONFIGURATION, CONFIGURATION):
        answer = b""
    if answer is None:
        return UsbStatus.PIPE, b""
    return UsbStatus.OK, answer[:length]


def sets_configuration(data: bytes) -> bool:
    """Whether it sets the configuration, which Linux denies while an interface is claimed."""
    return data[:2] == bytes((_OUT_STANDARD, _SET_CONFIGURATION))


def _descriptor(of: Descriptors, kind: int, index: int) -> bytes | None:
    if kind == 1 and index == 0:
        return _raw(_DEVICE_FIELDS)
    if kind == 2 and index == 0:
        ends = b"".join(map(_raw, _ENDPOINTS))
        return _raw(_CONFIGURATION_FIELDS) + _raw(_INTERFACE_FIELDS) + ends
    if kind == 3 and index == 0:
        return struct.pack("<BBH", 4, 3, _LANGUAGE)
    if kind == 3 and index <= len(_STRINGS):
        text = str(getattr(of, _STRINGS[index - 1])).encode("utf-16-le")
        return struct.pack("<BB", 2 + len(text), 3) + text
    return None
