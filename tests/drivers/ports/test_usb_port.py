"""USB ports on a bus in memory: threads, time-outs, unplugging, and nothing left behind."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable

import pytest

from drivers.ports import Port, usb
from drivers.ports.port import WRITE_BOUND
from drivers.ports.usb import DELIVERY_SIZE, READ_BOUND, open_usb
from tests.support.asynchronous import asynchronous
from tests.support.drivers.fake_usb import FakeDevice
from tests.support.drivers.listening import PATIENCE, Listener

NAME = "fake=bus"


async def opened(listener: Listener) -> Port:
    return await open_usb("SH-1", listener, backend=NAME)


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


def test_bytes_go_both_ways(device: FakeDevice) -> None:
    async def run() -> None:
        listener = Listener()
        port = await opened(listener)
        assert port.name == "SH-1"
        port.write(b"to the ")
        port.write(b"device")
        assert await taken(device, 13) == b"to the device"
        device.send(b"to", b"", b" the host")
        await listener.until(lambda: listener.data == b"to the host")
        await port.close()
        assert listener.losses == []
        assert usb_threads() == []

    asyncio.run(run())
    assert device.did["claim_interface"] == 1
    assert device.did["release_interface"] == 1
    assert device.did["open_device"] == device.did["close_device"] == 1
    assert not device.did["set_configuration"]


@asynchronous
async def test_a_read_that_times_out_is_no_loss(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usb, "READ_MS", 1)
    listener = Listener()
    port = await opened(listener)
    with device.changed:
        device.reads = 0
    async with asyncio.timeout(PATIENCE):
        while device.reads < 5:
            await asyncio.sleep(0.001)
    # Other backends have no class of their own for it.
    device.fail(errno.ETIMEDOUT, "bulk_read")
    device.reads = 0
    async with asyncio.timeout(PATIENCE):
        while device.reads < 5:
            await asyncio.sleep(0.001)
    with device.changed:  # not while a read looks what it is to raise
        del device.fails["bulk_read"]
    device.send(b"still here")
    await listener.until(lambda: listener.data)
    assert listener.losses == []
    await port.close()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 256])
def test_whole_packets_are_ended_with_an_empty_one(device: FakeDevice, size: int) -> None:
    async def run() -> None:
        port = await opened(Listener())
        port.write(bytes(size))
        await taken(device, size)
        port.write(b"x")
        await taken(device, size + 1)
        await port.close()

    asyncio.run(run())
    empty = [b""] if size % 64 == 0 else []
    assert device.taken == [bytes(size), *empty, b"x"]


@asynchronous
async def test_a_write_that_is_taken_in_part_goes_on(device: FakeDevice) -> None:
    device.at_most = 100
    port = await opened(Listener())
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
    listener = Listener()
    port = await opened(listener)
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
    listener = Listener()
    port = await opened(listener)
    for _ in range(WRITE_BOUND // 1000 + 10):
        port.write(bytes(1000))
    assert listener.losses == []
    await listener.until(lambda: listener.losses)
    assert [why.reason for why in listener.losses] == ["it does not take bytes: 65536 wait"]
    assert usb_threads() == []
    await port.close()
    assert len(listener.losses) == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.EPIPE])
def test_unplugging_is_told_once(device: FakeDevice, number: int) -> None:
    async def run() -> None:
        listener = Listener()
        port = await opened(listener)
        device.send(b"last words")
        await listener.until(lambda: listener.data)
        device.unplug(read=number, write=errno.ENODEV)
        port.write(b"to nobody")
        await listener.until(lambda: listener.losses)
        port.write(b"to nobody")
        await port.close()
        assert [why.reason for why in listener.losses] == ["it was unplugged"]
        assert usb_threads() == []

    asyncio.run(run())
    assert device.did["close_device"] == 1


@asynchronous
async def test_other_errors_are_told_as_they_are(device: FakeDevice) -> None:
    listener = Listener()
    await opened(listener)
    device.fail(errno.EOVERFLOW, "bulk_read")
    await listener.until(lambda: listener.losses)
    assert listener.losses[0].reason == "it failed: EOVERFLOW"


@pytest.mark.parametrize("function", ["bulk_read", "bulk_write"])
@pytest.mark.parametrize("problem", [ValueError("odd"), OSError(5, "of another kind")])
@asynchronous
async def test_whatever_a_transfer_ends_with_the_loss_is_told(
    device: FakeDevice, function: str, problem: Exception
) -> None:
    listener = Listener()
    port = await opened(listener)
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
    listener = Listener()
    port = await opened(listener)
    device.fail(errno.ENODEV, "bulk_write")
    port.write(b"to nobody")
    await listener.until(lambda: listener.losses)
    assert listener.losses[0].reason == "it was unplugged"


@asynchronous
async def test_when_lost_is_told_the_device_is_free(device: FakeDevice) -> None:
    seen = []
    listener = Listener()
    port = await opened(listener)
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
async def test_after_close_nothing_is_heard(device: FakeDevice) -> None:
    listener = Listener()
    port = await opened(listener)
    closing = asyncio.ensure_future(port.close())
    await asyncio.sleep(0)
    device.send(b"late")
    device.unplug()
    await closing
    await port.close()
    port.write(b"late too")
    assert (listener.data, listener.losses) == (b"", [])


@asynchronous
async def test_what_came_just_before_close_is_not_heard(device: FakeDevice) -> None:
    listener = Listener()
    port = await opened(listener)
    with device.changed:
        before = device.did["bulk_read"]
    device.send(b"late")
    stand_still(lambda: device.did["bulk_read"] != before)  # the owner has it
    await port.close()
    assert listener.data == b""


@asynchronous
async def test_a_loss_that_close_overtakes_is_not_told(device: FakeDevice) -> None:
    listener = Listener()
    port = await opened(listener)
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
    port = await opened(Listener())
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
    listener = Listener()
    port = await opened(listener)
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
        await opened(Listener())

    asyncio.run(run())
    device.send(b"nobody hears this")
    for thread in threading.enumerate():
        if thread.name.startswith("usb"):
            thread.join(PATIENCE)
    assert usb_threads() == []
    assert device.did["close_device"] == 1


@asynchronous
async def test_a_busy_loop_makes_the_device_wait(device: FakeDevice) -> None:
    listener = Listener()
    port = await opened(listener)
    chunk = bytes(1024)
    count = 2 * READ_BOUND // len(chunk)
    device.send(*[chunk] * count)
    device.until_taken(0)
    stand_still(lambda: device.did["bulk_read"] >= READ_BOUND // len(chunk))
    threading.Event().wait(0.02)
    assert device.did["bulk_read"] <= READ_BOUND // len(chunk) + 1
    await listener.until(lambda: len(listener.data) == count * len(chunk))
    await port.close()


def test_the_loop_comes_round_between_what_it_hears(device: FakeDevice) -> None:
    """A device that talks without end stalls no other."""
    turns: list[int] = []
    sizes: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        listener = Listener()
        deliver = listener.received

        def hear(data: bytes) -> None:
            sizes.append(len(data))
            loop.call_soon(turns.append, len(sizes))
            deliver(data)

        listener.received = hear  # type: ignore[method-assign]
        port = await opened(listener)
        data = bytes(range(256)) * 100
        device.send(*(data[at : at + 1000] for at in range(0, len(data), 1000)))
        device.unplug_after_all()
        stand_still(lambda: device.did["close_device"])
        await listener.until_lost()
        assert listener.data == data  # all of it before the loss
        await port.close()

    asyncio.run(run())
    assert max(sizes) == DELIVERY_SIZE
    assert turns == list(range(1, len(sizes) + 1))
