"""Opening of a port by its address, for all transports."""

from __future__ import annotations

from drivers.ports.address import Address, Transport
from drivers.ports.port import Port, PortListener


async def open_port(address: Address, ears: PortListener) -> Port:
    """Open the port of an address. Raises PortRefused."""
    # Imported when needed: not every table has a USB library or a serial port.
    if address.transport is Transport.USB:
        from drivers.ports.usb import open_usb

        return await open_usb(address.where, ears, backend=address.backend, place=address.place)
    from drivers.ports.serial import open_serial

    if address.transport is Transport.ADAPTER:
        from drivers.ports import discovery as finding

        path = await finding.ask(finding.adapter_path, address.where)
        return await open_serial(path, ears)
    return await open_serial(address.where, ears)
