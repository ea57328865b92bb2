"""Which device is wanted, and where it is plugged in today."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from drivers.address import OWN_BACKEND, Address
from drivers.finding import Found, serial_ports, usb_devices
from drivers.happenings import Identity
from drivers.port import PortRefused
from firmware_protocol.enums import DeviceClass
from firmware_protocol.keys import fingerprint
from firmware_protocol.messages_frames import HelloRsp


class Wanted(Struct, frozen=True):
    """A device that the table has, and what the host knows of it."""

    device_class: DeviceClass
    serial: str
    key: bytes
    """Its public key, from its pairing."""
    address: Address | None = None
    """Where it is plugged in; None: found by its serial number, which a device on USB tells. A
    device behind a serial adapter is found by the adapter's own number (`adapter:...`)."""
    backend: str = OWN_BACKEND
    """Of USB, where there is no address."""
    firmware: bytes = b""
    """Digest of the firmware that the record knows; empty: none yet."""
    boot: int = 0
    """Starts of the device that the record knows."""

    @property
    def identity(self) -> Identity:
        return Identity(self.device_class, self.serial, fingerprint(self.key))


def identity_of(answer: HelloRsp) -> Identity:
    """Who a device says that it is."""
    return Identity(answer.device_class, answer.serial, answer.fingerprint)


async def locate(wanted: Wanted) -> Address:
    """Where this device is plugged in, or PortRefused."""
    if wanted.address is not None:
        return wanted.address
    addresses = await asyncio.to_thread(_look, wanted)
    if not addresses:
        raise PortRefused(f"no port has the serial number {wanted.serial}", absent=True)
    if len(addresses) > 1:
        many = ", ".join(map(str, addresses))
        raise PortRefused(f"{len(addresses)} ports have the serial number {wanted.serial}: {many}")
    return addresses[0]


def _look(wanted: Wanted) -> list[Address]:
    """Serial ports first: a machine without a USB library finds what hangs there all the same."""
    found = _with(wanted.serial, serial_ports())
    return found or _with(wanted.serial, usb_devices(wanted.backend))


def _with(serial: str, found: list[Found]) -> list[Address]:
    return [one.address for one in found if one.serial == serial]
