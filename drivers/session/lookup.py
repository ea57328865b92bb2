"""Which device is wanted, and where it is plugged in today."""

from __future__ import annotations

from msgspec import Struct

from drivers.events import Identity
from drivers.ports import (
    OWN_BACKEND,
    Address,
    Found,
    PortRefused,
    Transport,
    ask,
    serial_ports,
    usb_devices,
)
from firmware_protocol.messages.enums import DeviceClass
from firmware_protocol.messages.frames import HelloRsp
from firmware_protocol.tablelink.fingerprints import fingerprint


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


class Search:
    """Where a device is plugged in. Anything can claim its serial number, so all that do are tried
    in turn, one each time: which one it is shows in the handshake."""

    def __init__(self) -> None:
        self._visits = 0

    async def __call__(self, wanted: Wanted) -> Address:
        """Where to look this time, or PortRefused."""
        if wanted.address is not None and wanted.address.transport is not Transport.USB:
            return wanted.address
        addresses = await ask(_look, wanted)
        if not addresses:
            raise PortRefused(f"no port has the serial number {wanted.serial}", absent=True)
        visit, self._visits = self._visits, self._visits + 1
        return addresses[visit % len(addresses)]


def _look(wanted: Wanted) -> list[Address]:
    """All that have the number, always in the same order."""
    where = wanted.address
    if where is not None:
        found = _with(where.where, usb_devices(where.backend))
        return found if len(found) > 1 else [where]
    ports = _with(wanted.serial, serial_ports())
    try:
        return ports + _with(wanted.serial, usb_devices(wanted.backend))
    except PortRefused:
        # A machine without a USB library finds what hangs at a serial port all the same.
        if not ports:
            raise
        return ports


def _with(serial: str, found: list[Found]) -> list[Address]:
    return [one.address for one in found if one.serial == serial]
