"""What is plugged in: serial ports and USB devices, with the names that stay theirs.

A path such as /dev/ttyUSB0 belongs to whatever was plugged in first; what is looked for is
a serial number. These functions ask the machine and may take a while: not on the event loop.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from msgspec import Struct
from serial.tools import list_ports

from drivers.address import OWN_BACKEND, Address, Transport
from drivers.port import PortRefused

BY_ID: Final = Path("/dev/serial/by-id")


class Found(Struct, frozen=True):
    """Something that is plugged in."""

    address: Address
    """By the most stable name that it has."""
    path: str | None
    """Of a serial port: what it is called today."""
    serial: str | None
    """Its serial number: of a serial port, that of the USB adapter."""
    maker: str | None
    model: str | None


def serial_ports() -> list[Found]:
    """The serial ports that are plugged in. One that the machine has itself is listed too."""
    ports = sorted(list_ports.comports(), key=lambda port: port.device)
    numbers = Counter(port.serial_number for port in ports)
    stable = _stable_names()
    found = []
    for port in ports:
        where = Address(Transport.SERIAL, stable.get(_resolved(port.device), port.device))
        if port.serial_number and numbers[port.serial_number] == 1:
            where = Address(Transport.ADAPTER, port.serial_number)
        found.append(Found(where, port.device, port.serial_number, port.manufacturer, port.product))
    return found


def usb_devices(backend: str = OWN_BACKEND) -> list[Found]:
    """The USB devices that have our interface. PortRefused where the backend cannot be had."""
    from drivers import usb_finding  # not every table has a USB library

    found = usb_finding.present(usb_finding.load_backend(backend))
    return [
        Found(Address(Transport.USB, one.serial, backend), None, one.serial, one.maker, one.model)
        for one in sorted(found)
    ]


def adapter_path(serial: str) -> str:
    """The path today of the port whose USB adapter has this serial number, or PortRefused."""
    paths = sorted(port.device for port in list_ports.comports() if port.serial_number == serial)
    if not paths:
        raise PortRefused(f"adapter:{serial}: no such adapter is plugged in", absent=True)
    if len(paths) > 1:
        raise PortRefused(
            f"adapter:{serial}: has {len(paths)} ports ({', '.join(paths)}); "
            f"name the one by its path under {BY_ID}"
        )
    return paths[0]


def _stable_names() -> dict[Path, str]:
    """Names that udev makes of serial numbers, by what they lead to."""
    if not BY_ID.is_dir():
        return {}
    return {_resolved(str(link)): str(link) for link in sorted(BY_ID.iterdir())}


def _resolved(path: str) -> Path:
    return Path(path).resolve()
