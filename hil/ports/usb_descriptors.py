"""The descriptors of a simulated TableLink device: one vendor interface, a bulk endpoint each way.

They follow the Transport section of PROTOCOL.md: class 0xFF, subclass 0x54, protocol 0x01, and the
serial number of HELLO_RSP as a string. Each table is used twice: as bytes for control transfers,
and as fields for pyusb.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Final

from hil.ports.usb_messages import END_IN, END_OUT, PACKET, Descriptors, UsbStatus

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


def device(of: Descriptors) -> SimpleNamespace:
    return _fields(
        _DEVICE_FIELDS,
        bus=BUS,
        address=of.address,
        speed=_FULL_SPEED,
        port_number=of.port,
        port_numbers=(of.port,),
    )


def configuration(index: int) -> SimpleNamespace:
    if index:
        raise IndexError(f"Invalid configuration index {index}")
    return _fields(_CONFIGURATION_FIELDS, extra_descriptors=[])


def interface(index: int, alternate: int) -> SimpleNamespace:
    if index:
        raise IndexError(f"Invalid interface index {index}")
    if alternate:
        raise IndexError(f"Invalid alternate setting index {alternate}")
    return _fields(_INTERFACE_FIELDS, extra_descriptors=[])


def endpoint(index: int) -> SimpleNamespace:
    if not 0 <= index < len(_ENDPOINTS):
        raise IndexError(f"Invalid endpoint index {index}")
    return _fields(_ENDPOINTS[index], bRefresh=0, bSynchAddress=0, extra_descriptors=[])


# --- for control transfers ------------------------------------------------------------------------

_SETUP: Final = struct.Struct("<BBHHH")
_IN_STANDARD: Final = 0x80
_OUT_STANDARD: Final = 0x00
_GET_DESCRIPTOR, _GET_CONFIGURATION, _SET_CONFIGURATION = 6, 8, 9


def setup(request_type: int, request: int, value: int, index: int, length: int) -> bytes:
    """The setup packet of a control transfer."""
    return _SETUP.pack(request_type, request, value, index, length)


def control(of: Descriptors, data: bytes) -> tuple[UsbStatus, bytes]:
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


def configures(data: bytes) -> bool:
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
