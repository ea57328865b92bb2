"""Transfers to and from a simulated USB device: sizes, time-outs, stalls, threads."""

import asyncio
import errno
import os
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
import usb.core
import usb.util

from hil.ports import UsbStatus
from hil.ports.usb_backend import backend
from hil.ports.usb_endpoints import MAX_WAITING, InPipe, OutPipe, packets
from hil.ports.usb_messages import END_IN, END_OUT
from tests.support.hil.conform.usb_rig import LONG, SHORT, Rig, a_rig, find, scene


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    return tmp_path / "usb"


def test_transfers_of_all_sizes_go_both_ways(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        for size in (1, 63, 64, 65, 128, 1000):
            data = os.urandom(size)
            assert device.write(END_OUT, data, LONG) == size
            if size % 64 == 0:
                assert device.write(END_OUT, b"", LONG) == 0
            assert device.read(END_IN, 4096, LONG).tobytes() == data
        usb.util.dispose_resources(device)

    async def play() -> None:
        async with a_rig(bus, echo=True) as rig:
            await asyncio.to_thread(host, rig, lambda: None)

    asyncio.run(play())


def test_a_multiple_of_the_packet_size_waits_for_its_empty_packet(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        device.write(END_OUT, bytes(128), LONG)
        assert rig.heard == []
        device.write(END_OUT, b"", LONG)
        assert rig.heard == [bytes(128)]
        device.write(END_OUT, bytes(64), LONG)
        device.write(END_OUT, b"tail", LONG)  # without the empty packet it all becomes one
        assert rig.heard == [bytes(128), bytes(64) + b"tail"]
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_a_host_that_reads_packet_by_packet_sees_the_empty_one(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        usb.util.claim_interface(device, 0)
        call(rig.device.write, bytes(128))
        assert [len(device.read(END_IN, 64, LONG)) for _ in range(3)] == [64, 64, 0]
        call(rig.device.write, bytes(70))
        assert [len(device.read(END_IN, 64, LONG)) for _ in range(2)] == [64, 6]
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_a_buffer_that_is_too_short_overflows(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        usb.util.claim_interface(device, 0)
        call(rig.device.write, bytes(50))
        with pytest.raises(usb.core.USBError) as short:
            device.read(END_IN, 20, LONG)
        assert (short.value.errno, short.value.backend_error_code) == (errno.EOVERFLOW, -8)
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_time_outs_are_those_of_libusb(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        begun = time.monotonic()
        with pytest.raises(usb.core.USBTimeoutError) as late:
            device.read(END_IN, 64, SHORT)
        assert (late.value.errno, late.value.backend_error_code) == (110, -7)
        assert time.monotonic() - begun >= SHORT / 1000
        call(rig.device.write, b"after it")
        assert device.read(END_IN, 64, LONG).tobytes() == b"after it"
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_hanging_firmware_accepts_only_what_its_endpoint_buffers(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        rig.reading = False
        assert device.write(END_OUT, bytes(200), SHORT) == 128
        with pytest.raises(usb.core.USBTimeoutError):
            device.write(END_OUT, b"more", SHORT)
        assert rig.heard == []
        rig.reading = True
        call(rig.device.resume)
        device.write(END_OUT, b"end", LONG)
        assert rig.heard == [bytes(128) + b"end"]
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_a_pending_write_continues_when_the_firmware_reads(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        def resume() -> None:
            rig.reading = True
            rig.device.resume()

        device = find(bus)
        rig.reading = False
        later = threading.Timer(0.02, call, (resume,))
        later.start()
        assert device.write(END_OUT, bytes(300), LONG) == 300
        later.join()
        assert rig.heard == [bytes(300)]
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_a_stalled_endpoint_stays_so_until_it_is_cleared(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        later = threading.Timer(0.02, call, (rig.device.stall, END_IN))
        later.start()
        for _ in range(2):
            with pytest.raises(usb.core.USBError) as stalled:
                device.read(END_IN, 64, LONG)
            assert (stalled.value.errno, stalled.value.backend_error_code) == (errno.EPIPE, -9)
        later.join()
        device.write(END_OUT, b"the other way is open", LONG)
        device.clear_halt(END_IN)
        call(rig.device.write, b"open")
        assert device.read(END_IN, 64, LONG).tobytes() == b"open"
        call(rig.device.stall, END_OUT)
        with pytest.raises(usb.core.USBError):
            device.write(END_OUT, b"x", LONG)
        device.clear_halt(END_OUT)
        device.write(END_OUT, b"x", LONG)
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_reading_and_writing_threads_do_not_wait_for_each_other(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        usb.util.claim_interface(device, 0)
        got: list[bytes] = []
        reader = threading.Thread(
            target=lambda: got.append(device.read(END_IN, 4096, LONG).tobytes())
        )
        reader.start()
        for number in range(50):
            device.write(END_OUT, b"%d" % number, LONG)
        assert len(rig.heard) == 50
        assert not got
        call(rig.device.write, b"at last")
        reader.join(5)
        assert got == [b"at last"]
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_closing_a_handle_wakes_a_pending_read(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        port = backend(str(bus))
        handle = port.open_device(next(iter(port.enumerate_devices())))
        port.claim_interface(handle, 0)
        failed: list[int | None] = []

        def read() -> None:
            try:
                port.bulk_read(handle, END_IN, 0, array("B", bytes(64)), 0)
            except usb.core.USBError as problem:
                failed.append(problem.errno)

        reader = threading.Thread(target=read)
        reader.start()
        while not rig.device.waiting:  # until the read waits at the device
            time.sleep(0.001)
        port.close_device(handle)
        reader.join(5)
        assert failed == [errno.ENODEV]

    scene(bus, host)


def test_longer_transfers_than_a_message(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        frame = bytes(range(255, -1, -1))
        data = frame * 200 + b"an end"
        assert device.write(END_OUT, data, LONG) == len(data)
        assert b"".join(rig.heard) == data
        call(rig.device.write, data)
        assert device.read(END_IN, 60_000, SHORT).tobytes() == data[:MAX_WAITING]
        call(rig.device.write, b"x" + data)
        whole = (MAX_WAITING - 1) // len(frame) * len(frame)
        assert device.read(END_IN, 60_000, SHORT).tobytes() == (b"x" + data)[: whole + 1]
        usb.util.dispose_resources(device)

    scene(bus, host)


# --- the endpoints alone --------------------------------------------------------------------------


def test_packets_end_with_a_short_one() -> None:
    assert packets(b"") == [b""]
    assert [len(packet) for packet in packets(bytes(63))] == [63]
    assert [len(packet) for packet in packets(bytes(64))] == [64, 0]
    assert [len(packet) for packet in packets(bytes(130))] == [64, 64, 2]


def test_without_a_host_the_endpoint_keeps_two_packets() -> None:
    pipe = InPipe()
    frame = b"x" * 69 + b"\0"
    pipe.send(frame * 3, claimed=False)
    assert pipe.lost == 2 * len(frame)  # by whole frames
    pipe.send(b"x\0", claimed=False)
    assert pipe.lost == 2 * len(frame) + 2
    (done,) = pipe.read(1, 4096)
    assert done.data == frame
    pipe.send(bytes(128), claimed=False)
    (done,) = pipe.read(1, 4096)
    assert done.data == bytes(127)


def test_a_cancelled_read_returns_what_has_arrived() -> None:
    pipe = InPipe()
    pipe.send(bytes(200), claimed=True)
    assert pipe.read(7, 300)[0].count == 200
    assert pipe.read(7, 300) == []
    (done,) = pipe.cancel(7)
    assert (done.number, done.status, done.count) == (7, UsbStatus.TIMEOUT, 0)


def test_a_transfer_without_end_is_taken_when_the_buffer_is_full() -> None:
    pipe = OutPipe(lambda: True)
    for number in range(64):
        pipe.write(number, bytes(64))
    assert [len(transfer) for transfer in pipe.take()] == [4096]
