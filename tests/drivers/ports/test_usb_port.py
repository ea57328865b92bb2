"""USB ports on a bus in memory: threads, time-outs, unplugging, and nothing left behind."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable

import pytest
from usb.backend import libusb1

from drivers.ports import (
    Address,
    Port,
    PortRefused,
    Transport,
    UsbPlace,
    usb,
    usb_devices,
    usb_discovery,
)
from drivers.ports.port import WRITE_BOUND
from drivers.ports.usb import DELIVERY_SIZE, READ_BOUND, open_usb
from tests.support.asynchronous import asynchronous
from tests.support.drivers.fake_usb import FakeDevice, failure, plugged
from tests.support.drivers.listening import PATIENCE, Listener

NAME = "fake=bus"
pytestmark = pytest.mark.usefixtures("announced")


async def opened() -> tuple[Listener, Port]:
    listener = Listener()
    return listener, await open_usb("SH-1", listener, backend=NAME)


async def reads(device: FakeDevice, count: int) -> None:
    """So many times it was asked for bytes."""
    async with asyncio.timeout(PATIENCE):
        while device.reads < count:
            await asyncio.sleep(0.001)


async def opens() -> None:
    """The device is opened, and closed again."""
    _, port = await opened()
    await port.close()


async def taken(device: FakeDevice, size: int) -> bytes:
    return await asyncio.to_thread(device.until_taken, size)


def stand_still(until: Callable[[], object]) -> None:
    """Wait without letting the loop come round."""
    deadline = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < deadline
        threading.Event().wait(0.001)


def usb_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("usb")]


def join_usb_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("usb"):
            thread.join(PATIENCE)


@asynchronous
async def test_bytes_go_both_ways(device: FakeDevice) -> None:

    listener, port = await opened()
    assert port.name == "SH-1"
    port.write(b"to the ")
    port.write(b"device")
    assert await taken(device, 13) == b"to the device"
    device.send(b"to", b"", b" the host")
    await listener.until(lambda: listener.data == b"to the host")
    await port.close()
    assert (listener.losses, usb_threads()) == ([], [])
    assert (device.did["claim_interface"], device.did["release_interface"]) == (1, 1)
    assert device.did["open_device"] == device.did["close_device"] == 1
    assert not device.did["set_configuration"]


@asynchronous
async def test_a_read_that_times_out_is_no_loss(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usb, "READ_MS", 1)
    listener, port = await opened()
    with device.changed:
        device.reads = 0
    await reads(device, 5)
    # Other backends have no class of their own for it.
    device.fail(errno.ETIMEDOUT, "bulk_read")
    device.reads = 0
    await reads(device, 5)
    with device.changed:  # not while a read looks what it is to raise
        del device.fails["bulk_read"]
    device.send(b"still here")
    await listener.until(lambda: listener.data)
    assert listener.losses == []
    await port.close()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 256])
@asynchronous
async def test_whole_packets_are_ended_with_an_empty_one(device: FakeDevice, size: int) -> None:

    _, port = await opened()
    port.write(bytes(size))
    await taken(device, size)
    port.write(b"x")
    await taken(device, size + 1)
    await port.close()
    assert device.taken == [bytes(size), *([b""] if size % 64 == 0 else []), b"x"]


@asynchronous
async def test_a_write_that_is_accepted_in_part_continues(device: FakeDevice) -> None:
    device.at_most = 100
    _, port = await opened()
    data = bytes(range(256)) * 2
    port.write(data)
    assert await taken(device, 512) == data
    await port.close()


@asynchronous
async def test_a_device_that_takes_nothing_for_a_while(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usb, "WRITE_MS", 1)
    device.takes = False
    listener, port = await opened()
    port.write(b"patience")
    async with asyncio.timeout(PATIENCE):
        while device.did["bulk_write"] < 5:
            await asyncio.sleep(0.001)
    with device.changed:
        device.takes = True
        device.changed.notify_all()
    assert await taken(device, 8) == b"patience"
    assert listener.losses == []
    await port.close()


@asynchronous
async def test_a_device_that_never_takes_anything_is_lost(device: FakeDevice) -> None:
    device.takes = False
    listener, port = await opened()
    for _ in range(WRITE_BOUND // 1000 + 10):
        port.write(bytes(1000))
    assert listener.losses == []
    await listener.until(lambda: listener.losses)
    assert [why.reason for why in listener.losses] == ["it does not take bytes: 65536 wait"]
    assert usb_threads() == []
    await port.close()
    assert len(listener.losses) == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.EPIPE])
@asynchronous
async def test_unplugging_is_reported_once(device: FakeDevice, number: int) -> None:

    listener, port = await opened()
    device.send(b"last words")
    await listener.until(lambda: listener.data)
    device.unplug(read=number, write=errno.ENODEV)
    port.write(b"to nobody")
    await listener.until(lambda: listener.losses)
    port.write(b"to nobody")
    await port.close()
    assert ([why.reason for why in listener.losses], usb_threads()) == (["it was unplugged"], [])
    assert device.did["close_device"] == 1


@asynchronous
async def test_other_errors_are_reported_as_they_are(device: FakeDevice) -> None:
    listener, _ = await opened()
    device.fail(errno.EOVERFLOW, "bulk_read")
    await listener.until(lambda: listener.losses)
    assert listener.losses[0].reason == "it failed: EOVERFLOW"


@pytest.mark.parametrize("function", ["bulk_read", "bulk_write"])
@pytest.mark.parametrize("problem", [ValueError("odd"), OSError(5, "of another kind")])
@asynchronous
async def test_any_error_of_a_transfer_is_reported_as_a_loss(
    device: FakeDevice, function: str, problem: Exception
) -> None:
    listener, port = await opened()
    with device.changed:
        device.fails[function] = problem
        device.changed.notify_all()
    port.write(b"to nobody")
    await listener.until_lost()
    assert listener.losses[0].reason in ("it was unplugged", "it failed: odd")


@asynchronous
async def test_an_unplug_that_only_a_write_notices(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usb, "READ_MS", 5)
    listener, port = await opened()
    device.fail(errno.ENODEV, "bulk_write")
    port.write(b"to nobody")
    await listener.until(lambda: listener.losses)
    assert listener.losses[0].reason == "it was unplugged"


@asynchronous
async def test_when_the_loss_is_reported_the_device_is_released(device: FakeDevice) -> None:
    seen = []
    listener, port = await opened()
    lost = listener.lost

    def told(why: object) -> None:
        seen.append(device.did["close_device"])
        lost(why)  # type: ignore[arg-type]

    listener.lost = told  # type: ignore[method-assign]
    device.unplug()
    await listener.until(lambda: listener.losses)
    assert seen == [1]
    await port.close()


@asynchronous
async def test_after_close_nothing_is_received(device: FakeDevice) -> None:
    listener, port = await opened()
    closing = asyncio.ensure_future(port.close())
    await asyncio.sleep(0)
    device.send(b"late")
    device.unplug()
    await closing
    await port.close()
    port.write(b"late too")
    assert (listener.data, listener.losses) == (b"", [])


@asynchronous
async def test_bytes_that_arrive_just_before_close_are_not_received(device: FakeDevice) -> None:
    listener, port = await opened()
    with device.changed:
        before = device.did["bulk_read"]
    device.send(b"late")
    stand_still(lambda: device.did["bulk_read"] != before)  # the owner has it
    await port.close()
    assert listener.data == b""


@asynchronous
async def test_a_loss_that_close_overtakes_is_not_reported(device: FakeDevice) -> None:
    listener, port = await opened()
    device.unplug()
    stand_still(lambda: device.did["close_device"])  # the owner knows
    await port.close()
    assert listener.losses == []


@asynchronous
async def test_close_is_bounded_when_a_thread_is_stuck(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usb, "CLOSE_SECONDS", 0.05)
    stuck = threading.Event()
    read = device.read
    reading = threading.Event()

    def hang(buffer: object, milliseconds: int) -> int:
        reading.set()
        assert stuck.wait(PATIENCE)
        return read(buffer, 0)  # type: ignore[arg-type]

    monkeypatch.setattr(device, "read", hang)
    _, port = await opened()
    await asyncio.to_thread(reading.wait, PATIENCE)
    await asyncio.wait_for(port.close(), 1)
    assert not device.did["close_device"]  # never while a transfer is under way
    stuck.set()
    await port.close()


@asynchronous
async def test_the_device_is_not_let_go_under_a_write(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, stuck = threading.Event(), threading.Event()

    def hang(data: bytes, milliseconds: int) -> int:
        writing.set()
        assert stuck.wait(PATIENCE)
        return len(data)

    monkeypatch.setattr(device, "write", hang)
    listener, port = await opened()
    port.write(b"slow")
    assert await asyncio.to_thread(writing.wait, PATIENCE)
    device.unplug()
    await asyncio.sleep(0.05)  # time in which it would be let go, if it were
    closed = [device.did["close_device"]]
    stuck.set()
    await listener.until_lost()
    closed.append(device.did["close_device"])
    assert closed == [0, 1]


def test_a_loop_that_ends_without_close_ends_the_threads(device: FakeDevice) -> None:
    async def run() -> None:
        await opened()

    asyncio.run(run())
    device.send(b"nobody hears this")
    join_usb_threads()
    assert (usb_threads(), device.did["close_device"]) == ([], 1)


@asynchronous
async def test_a_busy_loop_makes_the_device_wait(device: FakeDevice) -> None:
    listener, port = await opened()
    chunk = bytes(1024)
    count = 2 * READ_BOUND // len(chunk)
    device.send(*[chunk] * count)
    device.until_taken(0)
    stand_still(lambda: device.did["bulk_read"] >= READ_BOUND // len(chunk))
    threading.Event().wait(0.02)
    assert device.did["bulk_read"] <= READ_BOUND // len(chunk) + 1
    await listener.until(lambda: len(listener.data) == count * len(chunk))
    await port.close()


@asynchronous
async def test_the_loop_runs_other_callbacks_between_deliveries(device: FakeDevice) -> None:
    """A device that talks without end stalls no other."""
    turns: list[int] = []
    sizes: list[int] = []

    loop = asyncio.get_running_loop()
    listener, port = await opened()
    deliver = listener.received

    def hear(data: bytes) -> None:
        sizes.append(len(data))
        loop.call_soon(turns.append, len(sizes))
        deliver(data)

    listener.received = hear  # type: ignore[method-assign]
    data = bytes(range(256)) * 100
    device.send(*(data[at : at + 1000] for at in range(0, len(data), 1000)))
    device.unplug_after_all()
    stand_still(lambda: device.did["close_device"])
    await listener.until_lost()
    assert listener.data == data  # all of it before the loss
    await port.close()
    assert (max(sizes), turns) == (DELIVERY_SIZE, list(range(1, len(sizes) + 1)))


# --- opening ----------------------------------------------------------------------------------


async def refusal(
    serial: str = "SH-1", backend: str = NAME, place: UsbPlace | None = None
) -> PortRefused:
    with pytest.raises(PortRefused) as caught:
        await open_usb(serial, Listener(), backend=backend, place=place)
    return caught.value


@asynchronous
async def test_a_device_that_is_not_there(device: FakeDevice) -> None:
    for serial in ("SH-9", "SH-2"):  # SH-2 is of another class
        gone = await refusal(serial)
        assert gone.absent
        assert str(gone) == f"usb+{NAME}:{serial}: no such device is plugged in"


@asynchronous
async def test_none_of_several_is_taken_for_the_first() -> None:
    device = FakeDevice("SH-1")
    with plugged("bus", device, FakeDevice("SH-1"), FakeDevice("SH-0")) as bus:
        why = await refusal()
        assert str(why) == (
            f"usb+{NAME}:SH-1: 2 devices have this serial number "
            "(bus 1 address 1, bus 1 address 2); all but one have to be unplugged"
        )
        assert (why.absent, [one.did["claim_interface"] for one in bus]) == (False, [0, 0, 0])
        assert [one.did["open_device"] - one.did["close_device"] for one in bus] == [0, 0, 0]
        assert usb_threads() == []
        del bus[1]

        await opens()
        assert device.did["claim_interface"] == 1


@pytest.mark.parametrize(
    ("place", "number", "words"),
    [
        (UsbPlace(1, 9), errno.EBUSY, "no such device is plugged in"),
        (UsbPlace(1, 2), errno.EBUSY, "it is in use by another program"),
        (None, errno.EBUSY, "it is in use by another program"),
    ],
)
@asynchronous
async def test_a_refusal_names_the_port_as_it_was_asked_for(
    device: FakeDevice, place: UsbPlace | None, number: int, words: str
) -> None:
    device.fails["claim_interface"] = failure(number)
    address = Address(Transport.USB, "SH-1", NAME, place)
    assert str(await refusal(place=place)) == f"{address}: {words}"


@asynchronous
async def test_a_later_plug_in_is_found() -> None:
    with plugged("bus") as bus:
        assert (await refusal()).absent
        bus.append(FakeDevice("SH-1"))
        await opens()


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
@asynchronous
async def test_each_refusal_has_its_words(
    device: FakeDevice, function: str, number: int, words: str, absent: bool
) -> None:
    device.fails[function] = failure(number)
    refused = await refusal()
    assert words in str(refused)
    assert (refused.absent, usb_threads()) == (absent, [])
    left_open = device.did["open_device"] - device.did["close_device"]
    assert left_open == (function == "open_device")


@asynchronous
async def test_a_device_is_configured_where_it_is_not(device: FakeDevice) -> None:
    device.configured, device.driver = False, True

    await opens()
    assert (device.did["set_configuration"], device.did["detach_kernel_driver"]) == (1, 1)


@pytest.mark.parametrize("problem", [ValueError("odd"), TypeError("odd"), IndexError("odd")])
@asynchronous
async def test_whatever_opening_ends_with_is_a_refusal(
    device: FakeDevice, problem: Exception
) -> None:
    device.fails["claim_interface"] = problem
    assert "it cannot be opened: odd" in str(await refusal())
    assert usb_threads() == []


@pytest.mark.parametrize("problem", [NotImplementedError("no such call"), failure(errno.ENOSYS)])
@asynchronous
async def test_systems_without_kernel_drivers(
    device: FakeDevice, problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.fails["is_kernel_driver_active"] = problem
    await opens()


def test_an_opening_that_is_given_up(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    find = usb_discovery.find

    def slow(where: Address, backend: object) -> usb_discovery.Unit:
        assert held.wait(PATIENCE)
        return find(where, backend)

    monkeypatch.setattr(usb_discovery, "find", slow)

    async def run() -> None:
        opening = asyncio.ensure_future(opened())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        held.set()

    asyncio.run(run())
    join_usb_threads()
    assert device.did["close_device"] == 1


@asynchronous
async def test_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(await refusal(backend="none")) == (
        "there is no USB backend none; installed: broken, fake, libusb1"
    )
    assert "cannot be loaded (AttributeError: " in str(await refusal(backend="broken=x"))
    assert "cannot be loaded (NotADirectoryError: " in str(await refusal(backend="fake=nowhere"))
    monkeypatch.setattr(libusb1, "get_backend", lambda: None)
    missing = await refusal(backend="libusb1")
    assert "libusb-1.0-0" in str(missing)
    assert not missing.absent


def test_all_devices_of_our_class_are_listed(device: FakeDevice) -> None:
    found = usb_devices(NAME)
    assert [(str(one.address), one.serial, one.maker, one.model) for one in found] == [
        ("usb+fake=bus:SH-0", "SH-0", "Example Works", "Shoe One"),
        ("usb+fake=bus:SH-1", "SH-1", "Example Works", "Shoe One"),
    ]
    assert device.did["open_device"] == device.did["close_device"] == 1
