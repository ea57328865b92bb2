"""USB ports that cannot be opened, each with its reason, and what opening one does."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest
import usb.backend.libusb1

from drivers.ports import (
    Address,
    Port,
    PortRefused,
    Transport,
    UsbPlace,
    usb_devices,
    usb_discovery,
)
from drivers.ports.usb import open_usb
from tests.support.asynchronous import asynchronous
from tests.support.drivers.fake_usb import FakeDevice, failure, plugged
from tests.support.drivers.listening import PATIENCE, Listener

NAME = "fake=bus"
pytestmark = pytest.mark.usefixtures("announced")


async def opened(listener: Listener) -> Port:
    return await open_usb("SH-1", listener, backend=NAME)


def usb_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("usb")]


def refusal(
    serial: str = "SH-1", backend: str = NAME, place: UsbPlace | None = None
) -> PortRefused:
    async def run() -> PortRefused:
        with pytest.raises(PortRefused) as caught:
            await open_usb(serial, Listener(), backend=backend, place=place)
        return caught.value

    return asyncio.run(run())


def test_a_device_that_is_not_there(device: FakeDevice) -> None:
    for serial in ("SH-9", "SH-2"):  # SH-2 is of another class
        gone = refusal(serial)
        assert gone.absent
        assert str(gone) == f"usb+{NAME}:{serial}: no such device is plugged in"


def test_none_of_several_is_taken_for_the_first() -> None:
    device = FakeDevice("SH-1")
    with plugged("bus", device, FakeDevice("SH-1"), FakeDevice("SH-0")) as bus:
        why = refusal()
        assert str(why) == (
            f"usb+{NAME}:SH-1: 2 devices have this serial number "
            "(bus 1 address 1, bus 1 address 2); all but one have to be unplugged"
        )
        assert not why.absent
        assert [one.did["claim_interface"] for one in bus] == [0, 0, 0]
        assert [one.did["open_device"] - one.did["close_device"] for one in bus] == [0, 0, 0]
        assert usb_threads() == []
        del bus[1]

        async def run() -> None:
            port = await opened(Listener())
            await port.close()

        asyncio.run(run())
        assert device.did["claim_interface"] == 1


@pytest.mark.parametrize(
    ("place", "number", "words"),
    [
        (UsbPlace(1, 9), errno.EBUSY, "no such device is plugged in"),
        (UsbPlace(1, 2), errno.EBUSY, "it is in use by another program"),
        (None, errno.EBUSY, "it is in use by another program"),
    ],
)
def test_a_refusal_names_the_port_as_it_was_asked_for(
    device: FakeDevice, place: UsbPlace | None, number: int, words: str
) -> None:
    device.fails["claim_interface"] = failure(number)
    address = Address(Transport.USB, "SH-1", NAME, place)
    assert str(refusal(place=place)) == f"{address}: {words}"


def test_a_later_plug_in_is_found() -> None:
    with plugged("bus") as bus:
        assert refusal().absent
        bus.append(FakeDevice("SH-1"))

        async def run() -> None:
            port = await opened(Listener())
            await port.close()

        asyncio.run(run())


@pytest.mark.parametrize(
    ("function", "number", "words", "absent"),
    [
        ("claim_interface", errno.EBUSY, "in use by another program", False),
        ("claim_interface", errno.ENODEV, "just been unplugged", True),
        ("claim_interface", errno.EACCES, "udev rule", False),
        ("claim_interface", errno.ENOMEM, "it cannot be opened: ENOMEM", False),
        ("open_device", errno.EACCES, "bus 1 address 2", False),
        ("ctrl_transfer", errno.EPIPE, "udev rule", False),
        ("get_configuration_descriptor", errno.ENODEV, "no such device", True),
    ],
)
def test_each_refusal_has_its_words(
    device: FakeDevice, function: str, number: int, words: str, absent: bool
) -> None:
    device.fails[function] = failure(number)
    refused = refusal()
    assert words in str(refused)
    assert refused.absent == absent
    opens = 0 if function == "open_device" else device.did["open_device"]
    assert device.did["close_device"] == opens
    assert usb_threads() == []


def test_a_device_is_configured_where_it_is_not(device: FakeDevice) -> None:
    device.configured = False
    device.driver = True
    device.alternate = 0

    async def run() -> None:
        port = await opened(Listener())
        await port.close()

    asyncio.run(run())
    assert device.did["set_configuration"] == 1
    assert device.did["detach_kernel_driver"] == 1


@pytest.mark.parametrize("problem", [ValueError("odd"), TypeError("odd"), IndexError("odd")])
def test_whatever_opening_ends_with_is_a_refusal(device: FakeDevice, problem: Exception) -> None:
    device.fails["claim_interface"] = problem
    assert "it cannot be opened: odd" in str(refusal())
    assert usb_threads() == []


@pytest.mark.parametrize("problem", [NotImplementedError("no such call"), failure(errno.ENOSYS)])
@asynchronous
async def test_systems_without_kernel_drivers(
    device: FakeDevice, problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.fails["is_kernel_driver_active"] = problem
    port = await opened(Listener())
    await port.close()


def test_an_opening_that_is_given_up(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    find = usb_discovery.find

    def slow(where: Address, backend: object) -> usb_discovery.Unit:
        assert held.wait(PATIENCE)
        return find(where, backend)

    monkeypatch.setattr(usb_discovery, "find", slow)

    async def run() -> None:
        opening = asyncio.ensure_future(opened(Listener()))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        held.set()

    asyncio.run(run())
    for thread in threading.enumerate():
        if thread.name.startswith("usb"):
            thread.join(PATIENCE)
    assert device.did["close_device"] == 1


def test_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(refusal(backend="none")) == (
        "there is no USB backend none; installed: broken, fake, libusb1"
    )
    assert "cannot be loaded (AttributeError: " in str(refusal(backend="broken=x"))
    assert "cannot be loaded (NotADirectoryError: " in str(refusal(backend="fake=nowhere"))
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda: None)
    missing = refusal(backend="libusb1")
    assert "libusb-1.0-0" in str(missing)
    assert not missing.absent


def test_all_devices_of_our_class_are_listed(device: FakeDevice) -> None:
    found = usb_devices(NAME)
    assert [(str(one.address), one.serial, one.maker, one.model) for one in found] == [
        ("usb+fake=bus:SH-0", "SH-0", "Example Works", "Shoe One"),
        ("usb+fake=bus:SH-1", "SH-1", "Example Works", "Shoe One"),
    ]
    assert device.did["open_device"] == device.did["close_device"] == 1
