"""Serial and USB ports: find, open, read, write."""

from __future__ import annotations

from drivers.ports.discovery import (
    BY_ID,
    FoundPort,
    in_thread,
    open_port,
    serial_ports,
    usb_devices,
    usb_places,
)
from drivers.ports.port import (
    OWN_BACKEND,
    SERIAL_ALLOWED,
    Address,
    AddressProblem,
    Port,
    PortListener,
    PortLost,
    PortRefused,
    Transport,
    UsbPlace,
    is_serial,
    monotonic_us,
    parse,
    parse_placed,
)
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
    "in_thread",
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
