"""A host with real ports and a key store, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from drivers import events
from drivers.devices import CommandUnansweredError, LinkState, ShoeDriver
from drivers.keys import KeyStore, PairedDevice
from drivers.ports import Address
from drivers.session import Supervisor, WantedDevice
from firmware_protocol.device import create_identity, pair_directly
from firmware_protocol.messages import DeviceClass
from hil.simulator import DeviceSetup, LiveDevice
from tests.support.drivers.simulated import MemoryStore, stopped, until

SERIAL = "SH-0042"
BY = ("Ann", "Bob")


class House:
    """A host's files and a device's, paired."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "device"
        self.device = create_identity(self.place, DeviceClass.SHOE, SERIAL)
        self.store = KeyStore.create(folder / "keys")
        pair_directly(self.place, self.store.own().public_key().public_bytes_raw())
        one = self.device
        self.store.add(
            PairedDevice(
                one.device_class,
                SERIAL,
                one.maker,
                one.model,
                one.public,
                "2026-01-01T00:00:00Z",
                BY,
            )
        )
        self.file = folder / "SH.records"

    def setup(self, **where: Any) -> DeviceSetup:
        return DeviceSetup(
            device_class=DeviceClass.SHOE,
            place=self.place,
            control=self.folder / "control",
            sync=False,
            **where,
        )


class Host:
    def __init__(self, house: House, address: Address | None, backend: str) -> None:
        paired = house.store.find(SERIAL)
        assert paired is not None
        self.happenings: list[events.AnyHappening] = []
        self.store = MemoryStore()
        self.supervisor = Supervisor(
            WantedDevice(paired.device_class, SERIAL, paired.key, address, backend),
            self.store,
            own=house.store.existing_own,
            on_happening=self.happenings.append,
        )

    async def ready(self) -> None:
        what = self.supervisor
        await until(lambda: what.state is LinkState.READY or what.held is not None, 20)
        if what.state is not LinkState.READY:
            await what.adopt(BY)
            await until(lambda: what.state is LinkState.READY, 5)

    async def opens(self) -> None:
        """The gate. That a device has started anew is not known before its silence is."""
        for _ in range(5):
            await until(lambda: self.supervisor.state is LinkState.READY, 15)
            with suppress(CommandUnansweredError):
                await cast(ShoeDriver, self.supervisor.driver).open_gate()
                return
        raise AssertionError("the gate does not open")

    async def has_all(self, live: LiveDevice) -> None:
        await until(lambda: self.store.cursor().seq == live.device.firmware.ring.head, 10)


@asynccontextmanager
async def hosted(
    house: House, address: Address | None, backend: str = "libusb1"
) -> AsyncIterator[Host]:
    host = Host(house, address, backend)
    task = asyncio.create_task(host.supervisor.run())
    try:
        yield host
        assert not task.done()
    finally:
        await stopped(task)
