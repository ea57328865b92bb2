"""Search for serial ports and USB devices, for their stable names, and opening of a port.

A path such as /dev/ttyUSB0 depends on the order of plugging in, so devices are searched by serial
number. These functions block; the event loop calls them through in_thread().
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct
from serial.tools import list_ports, list_ports_linux

from drivers.ports.port import (
    OWN_BACKEND,
    Address,
    Port,
    PortListener,
    PortRefused,
    Transport,
    UsbPlace,
    is_adapter,
    no_thread,
)

BY_ID: Final = Path("/dev/serial/by-id")
DEVICES: Final = Path("/dev")
MAX_TEXT: Final = 126
"""Characters of a text in a USB descriptor, which the maker of the device chooses."""
_PORTS: Final = ("ttyS*", "ttyUSB*", "ttyXRUSB*", "ttyACM*", "ttyAMA*", "rfcomm*", "ttyAP*")
_PORT_ERRORS: Final = (OSError, TypeError, ValueError)
"""Errors of pyserial for a port that is unplugged during the search or has invalid texts."""


_W = TypeVar("_W")
_F = TypeVar("_F")


async def in_thread(what: Callable[[_W], _F], about: _W) -> _F:
    """Call this in a thread. Raises PortRefused without free threads or descriptors."""
    try:
        asked = asyncio.get_running_loop().run_in_executor(None, what, about)
    except RuntimeError as problem:
        raise no_thread("what is plugged in is not known", problem) from None
    try:
        return await asked
    except OSError as problem:
        raise PortRefused(f"what is plugged in is not known: {problem}") from None


class FoundPort(Struct, frozen=True):
    """A port or device that is plugged in."""

    address: Address
    """The most stable address that it has."""
    path: str | None
    """Current path of a serial port."""
    serial: str | None
    """Its serial number; of a serial port, that of the USB adapter."""
    maker: str | None
    model: str | None


def serial_ports() -> list[FoundPort]:
    """The serial ports that are plugged in, and those of the machine itself."""
    ports = sorted(_ports(), key=lambda port: port.device)
    numbers = Counter(port.serial_number for port in ports)
    stable = _stable_names()
    found = []
    for port in ports:
        where = Address(Transport.SERIAL, stable.get(_resolved(port.device), port.device))
        number = port.serial_number
        if number and numbers[number] == 1 and is_adapter(number):
            where = Address(Transport.ADAPTER, number)
        texts = map(plain, (number, port.manufacturer, port.product))
        found.append(FoundPort(where, port.device, *texts))
    return found


def usb_devices(backend: str = OWN_BACKEND) -> list[FoundPort]:
    """The USB devices that have our interface. Raises PortRefused without the backend."""
    from drivers.ports import usb_discovery  # not every table has a USB library

    found = usb_discovery.present(usb_discovery.load_backend(backend))
    numbers = Counter(one.serial for one in found)
    out = []
    for one in sorted(found, key=lambda one: (one.serial, one.place)):
        place = one.place if numbers[one.serial] > 1 else None
        where = Address(Transport.USB, one.serial, backend, place)
        out.append(FoundPort(where, None, one.serial, plain(one.maker), plain(one.model)))
    return out


def usb_places(address: Address) -> set[UsbPlace]:
    """Where the USB devices with the serial number of `address` are plugged in. Raises PortRefused
    if the backend is not available."""
    from drivers.ports import usb_discovery  # not every table has a USB library

    found = usb_discovery.present(usb_discovery.load_backend(address.backend))
    return {one.place for one in found if one.serial == address.where}


def adapter_path(serial: str) -> str:
    """Current path of the port whose USB adapter has this number. Raises PortRefused."""
    paths: list[str] = sorted(port.device for port in _ports() if port.serial_number == serial)
    if not paths:
        raise PortRefused(f"adapter:{serial}: no such adapter is plugged in", absent=True)
    if len(paths) > 1:
        raise PortRefused(
            f"adapter:{serial}: has {len(paths)} ports ({', '.join(paths)}); "
            f"name the one by its path under {BY_ID}"
        )
    return paths[0]


def plain(text: str | None) -> str | None:
    """A device's text, safe to print on a terminal."""
    if text is None:
        return None
    # Control sequences and changes of text direction are not printable.
    shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return shown if len(shown) <= MAX_TEXT else f"{shown[: MAX_TEXT - 1]}\N{HORIZONTAL ELLIPSIS}"


def _ports() -> list[Any]:
    """The ports as pyserial describes them."""
    try:
        return list(list_ports.comports())
    except _PORT_ERRORS:
        # One bad port makes pyserial's list fail: the same ports are read one by one.
        paths = sorted(path for name in _PORTS for path in DEVICES.glob(name))
        found = (_read_port(str(path)) for path in paths)
        return [port for port in found if port is not None and port.subsystem != "platform"]


def _read_port(path: str) -> Any | None:
    try:
        return list_ports_linux.SysFS(path)
    except _PORT_ERRORS:
        return None


def _stable_names() -> dict[Path, str]:
    """Links that udev names after serial numbers, by their target."""
    try:
        links = sorted(BY_ID.iterdir())
    except OSError:  # there is no link, or one was just removed
        return {}
    return {_resolved(str(link)): str(link) for link in links if str(link).isprintable()}


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))  # unlike Path.resolve() it never raises


async def open_port(address: Address, listener: PortListener) -> Port:
    """Open the port of an address. Raises PortRefused."""
    # Imported when needed: not every table has a USB library or a serial port.
    if address.transport is Transport.USB:
        from drivers.ports.usb import open_usb

        return await open_usb(address.where, listener, backend=address.backend, place=address.place)
    from drivers.ports.serial import open_serial

    if address.transport is Transport.ADAPTER:
        path = await in_thread(adapter_path, address.where)
        return await open_serial(path, listener)
    return await open_serial(address.where, listener)
