"""Search for the port of a device, its opening and closing within a timeout, and retry delays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from drivers.events import Identity
from drivers.ports import (
    OWN_BACKEND,
    Address,
    FoundPort,
    Port,
    PortListener,
    PortRefused,
    Transport,
    in_thread,
    serial_ports,
    usb_devices,
)
from firmware_protocol.messages import DeviceClass, HelloRsp
from firmware_protocol.tablelink import fingerprint

OPEN_TIMEOUT: Final = 10.0
CLOSE_TIMEOUT: Final = 5.0

OpenPort = Callable[[Address, PortListener], Awaitable[Port]]


class WantedDevice(Struct, frozen=True):
    """A device of the table, and what the host knows of it."""

    device_class: DeviceClass
    serial: str
    key: bytes
    """Its public key, from its pairing."""
    address: Address | None = None
    """Its port; None: found by its serial number, which a device on USB reports. A device behind a
    serial adapter is found by the number of the adapter (`adapter:...`)."""
    backend: str = OWN_BACKEND
    """pyusb's backend, if there is no address."""
    firmware: bytes = b""
    """Digest of the last recorded firmware; empty: none yet."""
    boot: int = 0
    """Last recorded number of starts."""

    @property
    def identity(self) -> Identity:
        return Identity(self.device_class, self.serial, fingerprint(self.key))


def identity_of(answer: HelloRsp) -> Identity:
    """The identity that a device claims."""
    return Identity(answer.device_class, answer.serial, answer.fingerprint)


class PortSearch:
    """Finds the port of a device.

    Several devices can claim one serial number: each call returns the next of them, and the
    handshake shows which one is authentic."""

    def __init__(self) -> None:
        self._visits = 0

    async def __call__(self, wanted: WantedDevice) -> Address:
        """The next address to try. Raises PortRefused."""
        if wanted.address is not None and wanted.address.transport is not Transport.USB:
            return wanted.address
        addresses = await in_thread(_search, wanted)
        if not addresses:
            raise PortRefused(f"no port has the serial number {wanted.serial}", absent=True)
        visit, self._visits = self._visits, self._visits + 1
        return addresses[visit % len(addresses)]


def _search(wanted: WantedDevice) -> list[Address]:
    """All ports with the serial number, always in the same order."""
    where = wanted.address
    if where is not None:
        found = _with(where.where, usb_devices(where.backend))
        return found if len(found) > 1 else [where]
    ports = _with(wanted.serial, serial_ports())
    try:
        return ports + _with(wanted.serial, usb_devices(wanted.backend))
    except PortRefused:
        # Without a USB library, devices at serial ports are still found.
        if not ports:
            raise
        return ports


def _with(serial: str, found: list[FoundPort]) -> list[Address]:
    return [one.address for one in found if one.serial == serial]


async def open_found(
    wanted: WantedDevice,
    find: Callable[[WantedDevice], Awaitable[Address]],
    opener: OpenPort,
    listener: PortListener,
) -> tuple[Address, Port]:
    """Find and open the port of a device. Raises PortRefused, also on timeout."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            address = await find(wanted)
            return address, await opener(address, listener)
    except TimeoutError:
        raise PortRefused(f"the port did not open within {OPEN_TIMEOUT:.0f} s") from None


async def close(port: Port) -> str:
    """Close a port. Returns why that failed; empty if it is closed."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await port.close()
    except TimeoutError:
        return f"did not close within {CLOSE_TIMEOUT:.0f} s"
    return ""


class Backoff:
    """Exponential backoff: `first` seconds, then twice as long each time, up to `maximum`."""

    def __init__(self, first: float, maximum: float) -> None:
        self._first = first
        self._maximum = maximum
        self._next = first

    def next_delay(self) -> float:
        """Seconds to wait before the next retry."""
        delay, self._next = self._next, min(2 * self._next, self._maximum)
        return delay

    def reset(self) -> None:
        """The next delay is the first one again."""
        self._next = self._first
