"""A machine that has no more threads, or no more descriptors: a denial, and tried again."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import serial as pyserial
from serial.tools import list_ports

from drivers import events
from drivers.devices import LinkState
from drivers.ports import (
    Address,
    PortRefused,
    Transport,
    discovery,
    open_port,
    open_serial,
    parse,
    serial,
)
from drivers.ports.port import WRITE_BOUND
from drivers.ports.usb import open_usb
from hil.simulator import running_device
from tests.support.asynchronous import asynchronous
from tests.support.drivers.fake_usb import FakeDevice
from tests.support.drivers.lines import Line, descriptors
from tests.support.drivers.listening import PATIENCE, Listener
from tests.support.drivers.real_host import House, hosted
from tests.support.drivers.simulated import until


@contextmanager
def no_more_threads(but: int = 0) -> Iterator[None]:
    """So many can still be started."""
    start, left = threading.Thread.start, [but]

    def starts(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", starts)
        yield


# --- looking and opening --------------------------------------------------------------------------


async def refused(address: Address, threads: int) -> PortRefused:
    with no_more_threads(but=threads), pytest.raises(PortRefused) as caught:
        await open_port(address, Listener())
    return caught.value


@pytest.mark.parametrize("threads", [0, 1], ids=["for its owner", "for its writer"])
@asynchronous
async def test_a_usb_port_needs_two(device: FakeDevice, threads: int) -> None:
    why = await refused(parse("usb+fake=bus:SH-1"), threads)
    assert str(why) == (
        "usb+fake=bus:SH-1: the machine is short of threads (can't start new thread)"
    )
    assert not why.absent
    # What was open for it is closed, and it can be had when there are threads again.
    assert device.did["open_device"] == device.did["close_device"] == threads
    await (await open_usb("SH-1", Listener(), backend="fake=bus")).close()


@asynchronous
async def test_to_look_for_an_adapter_takes_one() -> None:
    why = await refused(Address(Transport.ADAPTER, "A1"), 0)
    assert str(why).startswith("what is plugged in is not known: the machine is short of threads")
    assert not why.absent


@asynchronous
async def test_to_look_takes_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(list_ports, "comports", list)
    monkeypatch.setattr(discovery, "adapter_path", none_left)
    why = await refused(Address(Transport.ADAPTER, "A1"), 99)
    assert str(why) == "what is plugged in is not known: [Errno 24] Too many open files"


@asynchronous
async def test_a_supervisor_looks_again(tmp_path: Path) -> None:
    house, bus = House(tmp_path), tmp_path / "usb"
    bus.mkdir()
    async with running_device(house.setup(usb=bus)), hosted(house, None, f"sim={bus}") as host:
        with no_more_threads():
            await until(lambda: host.supervisor.state is LinkState.OPENING, 5)
            assert "short of threads" in host.supervisor.why
            await asyncio.sleep(0.5)
        denials = [one.why for one in host.happenings if isinstance(one, events.PortDenied)]
        assert ["short of threads" in why for why in denials] == [True]
        await host.ready()


# --- closing --------------------------------------------------------------------------------------


@asynchronous
async def test_a_serial_port_that_takes_a_thread_to_close_is_closed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serial, "AGAIN_SECONDS", 0.01)
    # The kernel cannot drop what the device does not take, so a close may block.
    monkeypatch.setattr(pyserial.Serial, "out_waiting", property(lambda self: 1))
    line = Line()

    before = descriptors()
    listener = Listener()
    port = await open_serial(line.path, listener)
    with no_more_threads():
        port.write(bytes(WRITE_BOUND + 1))  # it ends by itself, and that is told
        await listener.until_lost()
        await port.close()
        await asyncio.sleep(0.05)
        assert descriptors() > before
    async with asyncio.timeout(PATIENCE):
        while descriptors() > before:
            await asyncio.sleep(0.01)
    line.hang_up()
