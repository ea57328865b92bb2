"""Serial and USB ports: find, open, read, write."""

from __future__ import annotations

from drivers.ports.address import (
    OWN_BACKEND,
    SERIAL_ALLOWED,
    Address,
    AddressProblem,
    Transport,
    UsbPlace,
    is_serial,
    parse,
    parse_placed,
)
from drivers.ports.discovery import BY_ID, FoundPort, ask, serial_ports, usb_devices, usb_places
from drivers.ports.open import open_port
from drivers.ports.port import Port, PortListener, PortLost, PortRefused, monotonic_us
from drivers.ports.serial import open_serial

__all__ = [
    "BY_ID",
    "OWN_BACKEND",
    "SERIAL_ALLOWED",
    "Address",
    "AddressProblem",
    "FoundPort",
    "Port",
    "PortListener",
    "PortLost",
    "PortRefused",
    "Transport",
    "UsbPlace",
    "ask",
    "is_serial",
    "monotonic_us",
    "open_port",
    "open_serial",
    "parse",
    "parse_placed",
    "serial_ports",
    "usb_devices",
    "usb_places",
]
