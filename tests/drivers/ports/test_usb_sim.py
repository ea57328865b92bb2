"""USB ports on the simulated bus: transfers, packets and unplugging as a real device has them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from drivers.ports import Port, PortRefused, open_port, parse, usb_devices, usb_discovery
from drivers.ports.port import WRITE_BOUND
from hil.ports import UsbDevice, UsbStatus
from tests.support.asynchronous import asynchronous
from tests.support.drivers.listening import PATIENCE, Listener


@pytest.fixture(autouse=True)
def _announced(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("sim", "hil.ports.usb_backend:backend", usb_discovery.GROUP)
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: [point])


class Echo:
    """A device that sends back what it gets, in transfers of odd sizes."""

    def __init__(
        self, bus: Path, serial: str = "SH-1", gone: UsbStatus = UsbStatus.NO_DEVICE
    ) -> None:
        self.reading = True
        self.got = bytearray()
        self.usb = UsbDevice(
            bus, ("Maker", "Echo", serial), self.received, reading=lambda: self.reading, gone=gone
        )
        self.usb.plug()

    def received(self, data: bytes) -> None:
        self.got += data
        self.usb.write(data)


@asynccontextmanager
async def echoing(
    bus: Path, gone: UsbStatus = UsbStatus.NO_DEVICE
) -> AsyncIterator[tuple[Echo, Listener, str]]:
    """A device on a bus, a listener, and the device's address."""
    bus.mkdir()
    echo = Echo(bus, gone=gone)
    try:
        yield echo, Listener(), f"usb+sim={bus}:SH-1"
    finally:
        echo.usb.close()


async def opened(address: str, listener: Listener) -> Port:
    return await open_port(parse(address), listener)


@asynchronous
async def test_every_size_comes_back_whole(tmp_path: Path) -> None:
    async with echoing(tmp_path / "bus") as (echo, listener, address):
        port = await opened(address, listener)
        draw = random.Random(1)
        sent = b""
        for size in (1, 63, 64, 65, 127, 128, 256, 512, 1024, 1025, 4096, 9000):
            data = draw.randbytes(size)
            sent += data
            port.write(data)
            await listener.until_heard(len(sent))
        assert (bytes(echo.got), listener.data) == (sent, sent)
        await port.close()
        assert listener.losses == []


@pytest.mark.parametrize("gone", [UsbStatus.NO_DEVICE, UsbStatus.IO, UsbStatus.PIPE])
@asynchronous
async def test_unplugged_and_plugged_in_again(tmp_path: Path, gone: UsbStatus) -> None:
    async with echoing(tmp_path / "bus", gone) as (echo, listener, address):
        for number in (1, 2, 3):
            port = await opened(address, listener)
            port.write(b"here")
            await listener.until(lambda: listener.data)
            listener.data = b""
            echo.usb.unplug()
            await listener.until_lost(number)
            assert listener.losses[-1].reason == "it was unplugged"
            with pytest.raises(PortRefused, match="no such device") as caught:
                await opened(address, listener)
            assert caught.value.absent
            await port.close()
            echo.usb.plug(number + 1)  # in another port of the hub
        assert len(listener.losses) == 3


@asynchronous
async def test_two_programs_want_the_same_device(tmp_path: Path) -> None:
    async with echoing(tmp_path / "bus") as (_, listener, address):
        port = await opened(address, listener)
        with pytest.raises(PortRefused, match="in use by another program") as caught:
            await opened(address, Listener())
        assert not caught.value.absent
        port.write(b"the first goes on")
        await listener.until(lambda: listener.data == b"the first goes on")
        await port.close()
        await (await opened(address, listener)).close()


@asynchronous
async def test_a_frozen_device(tmp_path: Path) -> None:
    async with echoing(tmp_path / "bus") as (echo, listener, address):
        port = await opened(address, listener)
        echo.reading = False
        port.write(bytes(10_000))
        await asyncio.sleep(0.02)
        assert listener.losses == []
        echo.reading = True
        echo.usb.resume()
        await listener.until(lambda: len(listener.data) == 10_000)
        echo.reading = False
        port.write(bytes(WRITE_BOUND))
        port.write(bytes(WRITE_BOUND))
        await listener.until(lambda: listener.losses)
        assert listener.losses[0].reason == "it does not take bytes: 65536 wait"
        await asyncio.wait_for(port.close(), PATIENCE)


@asynchronous
async def test_all_that_are_plugged_in(tmp_path: Path) -> None:
    async with echoing(tmp_path / "bus") as (_, _, address):
        other = Echo(tmp_path / "bus", "SH-2")
        found = await asyncio.to_thread(usb_devices, f"sim={tmp_path}/bus")
        assert [(str(one.address), one.maker, one.model) for one in found] == [
            (address, "Maker", "Echo"),
            (f"usb+sim={tmp_path}/bus:SH-2", "Maker", "Echo"),
        ]
        other.usb.close()


@asynchronous
async def test_a_bus_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PortRefused, match="cannot be loaded"):
        await opened(f"usb+sim={tmp_path}/file:SH-1", Listener())
