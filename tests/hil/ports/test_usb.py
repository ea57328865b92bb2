"""The simulated USB bus through pyusb: found, claimed, pulled out; transfers, stalls, threads."""

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import usb.core
import usb.util

from hil.ports import UsbStatus, usb_bus
from hil.ports.usb_backend import backend
from hil.ports.usb_bus import MAX_WAITING, InPipe, OutPipe, packets
from hil.ports.usb_messages import END_IN, END_OUT
from tests.support.hil.conform.usb_rig import LONG, NAMES, SHORT, Rig, device_on, find


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    return tmp_path / "usb"


@pytest.fixture
def rig(bus: Path) -> Iterator[Rig]:
    with device_on(bus) as rig:
        yield rig


@contextmanager
def found(bus: Path) -> Iterator[Any]:
    """The device on this bus, closed at the end."""
    device = find(bus)
    yield device
    usb.util.dispose_resources(device)


@pytest.fixture
def device(rig: Rig, bus: Path) -> Iterator[Any]:
    with found(bus) as device:
        yield device


def failure(attempt: Callable[[], object]) -> tuple[int | None, int | None]:
    """With which errno, and which code of libusb, this fails."""
    with pytest.raises(usb.core.USBError) as failed:
        attempt()
    return failed.value.errno, failed.value.backend_error_code


def test_a_device_is_found_with_the_descriptors_of_the_protocol(rig: Rig, device: Any) -> None:
    assert (device.manufacturer, device.product, device.serial_number) == NAMES
    assert device.address == rig.device.address
    interface = device.get_active_configuration()[(0, 0)]
    triple = (
        interface.bInterfaceClass,
        interface.bInterfaceSubClass,
        interface.bInterfaceProtocol,
    )
    assert triple == (0xFF, 0x54, 0x01)
    bulk = usb.util.ENDPOINT_TYPE_BULK
    assert sorted(
        (end.bEndpointAddress, end.wMaxPacketSize, usb.util.endpoint_type(end.bmAttributes))
        for end in interface
    ) == [(END_OUT, 64, bulk), (END_IN, 64, bulk)]
    assert "SH-0001" in str(device)
    raw = device.ctrl_transfer(0x80, 6, 0x0200, 0, 255).tobytes()
    assert len(raw) == raw[2] == 32
    assert raw[9:18] == bytes((9, 4, 0, 0, 2, 0xFF, 0x54, 0x01, 0))
    assert device.ctrl_transfer(0x80, 6, 0x0100, 0, 18).tobytes()[8:12] == b"\x09\x12\x01\x00"


def test_unknown_control_transfers_stall(rig: Rig, device: Any) -> None:
    assert failure(lambda: device.ctrl_transfer(0xC0, 0x33, 0, 0, 8)) == (errno.EPIPE, -9)
    with pytest.raises(ValueError, match="Invalid configuration"):
        device.set_configuration(2)
    device.set_configuration()
    assert not device.is_kernel_driver_active(0)
    with pytest.raises(usb.core.USBError):
        device.detach_kernel_driver(0)


def test_one_handle_claims_and_others_get_busy(rig: Rig, bus: Path) -> None:
    first, second = find(bus), find(bus)
    usb.util.claim_interface(first, 0)
    for attempt in (
        lambda: usb.util.claim_interface(second, 0),
        lambda: second.write(END_OUT, b"x", SHORT),
        second.set_configuration,
    ):
        assert failure(attempt) == (errno.EBUSY, -6)
    assert second.serial_number == "SH-0001"  # endpoint 0 is for everybody
    usb.util.release_interface(first, 0)
    second.write(END_OUT, b"x", LONG)
    assert rig.heard == [b"x"]
    usb.util.dispose_resources(second)
    first.write(END_OUT, b"y", LONG)
    assert rig.heard == [b"x", b"y"]
    usb.util.dispose_resources(first)


_OTHER_PROCESS = """
import sys, usb.core, usb.util
from hil.ports.usb_backend import backend
device = usb.core.find(backend=backend(sys.argv[1]))
usb.util.claim_interface(device, 0)
print("claimed", flush=True)
sys.stdin.read()
"""


def test_another_process_has_it_until_it_is_killed(rig: Rig, device: Any, bus: Path) -> None:
    command = [sys.executable, "-c", _OTHER_PROCESS, str(bus)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"claimed\n"
        assert failure(lambda: usb.util.claim_interface(device, 0)) == (errno.EBUSY, -6)
        other.kill()
    device.write(END_OUT, b"free again", LONG)
    assert rig.heard == [b"free again"]


@pytest.mark.parametrize(
    ("gone", "number", "code"), [(UsbStatus.NO_DEVICE, 19, -4), (UsbStatus.IO, 5, -1)]
)
def test_a_read_that_waits_when_the_cable_is_pulled(
    bus: Path, gone: UsbStatus, number: int, code: int
) -> None:
    with device_on(bus, gone=gone) as rig:
        device = find(bus)
        later = threading.Timer(0.02, rig.call, (rig.device.unplug,))
        later.start()
        assert failure(lambda: device.read(END_IN, 64, LONG)) == (number, code)
        later.join()
        attempts: tuple[Callable[[], object], ...] = (
            lambda: device.read(END_IN, 64, SHORT),
            lambda: device.write(END_OUT, b"x", SHORT),
            lambda: device.ctrl_transfer(0x80, 8, 0, 0, 1),
        )
        for attempt in 2 * attempts:  # from then on it is ENODEV everywhere
            assert failure(attempt)[0] == errno.ENODEV
        assert find(bus) is None
        usb.util.dispose_resources(device)
        assert failure(attempts[0])[0] == errno.ENODEV


def test_a_replug_assigns_a_new_address_and_drops_transfers(
    rig: Rig, device: Any, bus: Path
) -> None:
    device.write(END_OUT, bytes(64), LONG)  # and its end never comes
    rig.call(rig.device.write, b"not read")
    rig.call(rig.device.unplug)
    rig.call(rig.device.plug)
    with found(bus) as again:
        assert again.serial_number == "SH-0001"
        assert again.address != device.address
        again.write(END_OUT, b"new", LONG)
        assert rig.heard == [b"new"]
        with pytest.raises(usb.core.USBTimeoutError):
            again.read(END_IN, 64, SHORT)


def test_several_devices_share_a_bus_and_keep_apart(bus: Path) -> None:
    with device_on(bus) as one, device_on(bus) as two:
        both = list(usb.core.find(find_all=True, backend=backend(str(bus))))
        assert [device.address for device in both] == [one.device.address, two.device.address]
        both[1].write(END_OUT, b"second", LONG)
        for device in both:
            usb.util.dispose_resources(device)
        assert (one.heard, two.heard) == ([], [b"second"])


def test_addresses_go_round_and_the_living_keep_theirs(bus: Path) -> None:
    with device_on(bus) as one:
        first = one.device.address
        (bus / "last-address").write_text("126\n")
        with device_on(bus) as two, device_on(bus) as three:
            assert (first, two.device.address, three.device.address) == (1, 127, 2)


def test_a_socket_of_a_killed_device_is_no_device(bus: Path) -> None:
    bus.mkdir()
    left = bus / "device-001"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(left))
    assert left.exists()
    assert find(bus) is None
    with device_on(bus) as rig:
        assert rig.device.address == 1
    assert [path.name for path in bus.iterdir()] == ["last-address"]


def test_a_bus_in_a_folder_with_a_very_long_name(tmp_path: Path) -> None:
    bus = tmp_path / ("long" * 50) / "usb"
    with device_on(bus) as rig, found(bus) as device:
        device.write(END_OUT, b"far away", LONG)
        assert rig.heard == [b"far away"]


def test_no_bus_and_no_directory(tmp_path: Path) -> None:
    assert find(tmp_path / "not yet") is None
    (tmp_path / "file").write_text("")
    for wrong in ("", str(tmp_path / "file")):
        with pytest.raises(NotADirectoryError, match="allowed: the directory of a bus"):
            backend(wrong)


def test_a_bus_that_is_full(bus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_bus, "ADDRESSES", 1)
    with device_on(bus), pytest.raises(usb_bus.BusFull), device_on(bus):
        pass


def test_nonsense_on_the_socket_ends_that_connection_only(rig: Rig, bus: Path) -> None:
    for nonsense in (b"x", b"\xff" * 40, bytes(13), b"\x03" + bytes(12), b"\x02" + bytes(12)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as strange:
            strange.settimeout(5)
            strange.connect(str(bus / f"device-{rig.device.address:03d}"))
            strange.send(nonsense)
            strange.recv(100)
    assert find(bus) is not None


def test_transfers_of_all_sizes_go_both_ways(bus: Path) -> None:
    with device_on(bus, echo=True), found(bus) as device:
        for size in (1, 63, 64, 65, 128, 1000):
            data = os.urandom(size)
            assert device.write(END_OUT, data, LONG) == size
            if size % 64 == 0:
                assert device.write(END_OUT, b"", LONG) == 0
            assert device.read(END_IN, 4096, LONG).tobytes() == data


def test_a_multiple_of_the_packet_size_waits_for_its_empty_packet(rig: Rig, device: Any) -> None:
    device.write(END_OUT, bytes(128), LONG)
    assert rig.heard == []
    device.write(END_OUT, b"", LONG)
    assert rig.heard == [bytes(128)]
    device.write(END_OUT, bytes(64), LONG)
    device.write(END_OUT, b"tail", LONG)  # without the empty packet it all becomes one
    assert rig.heard == [bytes(128), bytes(64) + b"tail"]


def test_a_host_that_reads_packet_by_packet_sees_the_empty_one(rig: Rig, device: Any) -> None:
    usb.util.claim_interface(device, 0)
    rig.call(rig.device.write, bytes(128))
    assert [len(device.read(END_IN, 64, LONG)) for _ in range(3)] == [64, 64, 0]
    rig.call(rig.device.write, bytes(70))
    assert [len(device.read(END_IN, 64, LONG)) for _ in range(2)] == [64, 6]


def test_a_buffer_that_is_too_short_overflows(rig: Rig, device: Any) -> None:
    usb.util.claim_interface(device, 0)
    rig.call(rig.device.write, bytes(50))
    assert failure(lambda: device.read(END_IN, 20, LONG)) == (errno.EOVERFLOW, -8)


def test_time_outs_are_those_of_libusb(rig: Rig, device: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(usb.core.USBTimeoutError) as late:
        device.read(END_IN, 64, SHORT)
    assert (late.value.errno, late.value.backend_error_code) == (110, -7)
    assert time.monotonic() - begun >= SHORT / 1000
    rig.call(rig.device.write, b"after it")
    assert device.read(END_IN, 64, LONG).tobytes() == b"after it"


def test_hanging_firmware_accepts_only_what_its_endpoint_buffers(rig: Rig, device: Any) -> None:
    rig.reading = False
    assert device.write(END_OUT, bytes(200), SHORT) == 128
    with pytest.raises(usb.core.USBTimeoutError):
        device.write(END_OUT, b"more", SHORT)
    assert rig.heard == []
    rig.reading = True
    rig.call(rig.device.resume)
    device.write(END_OUT, b"end", LONG)
    assert rig.heard == [bytes(128) + b"end"]


def test_a_pending_write_continues_when_the_firmware_reads(rig: Rig, device: Any) -> None:
    def resume() -> None:
        rig.reading = True
        rig.device.resume()

    rig.reading = False
    later = threading.Timer(0.02, rig.call, (resume,))
    later.start()
    assert device.write(END_OUT, bytes(300), LONG) == 300
    later.join()
    assert rig.heard == [bytes(300)]


def test_a_stalled_endpoint_stays_so_until_it_is_cleared(rig: Rig, device: Any) -> None:
    later = threading.Timer(0.02, rig.call, (rig.device.stall, END_IN))
    later.start()
    stalled = [failure(lambda: device.read(END_IN, 64, LONG)) for _ in range(2)]
    assert stalled == [(errno.EPIPE, -9)] * 2
    later.join()
    device.write(END_OUT, b"the other way is open", LONG)
    device.clear_halt(END_IN)
    rig.call(rig.device.write, b"open")
    assert device.read(END_IN, 64, LONG).tobytes() == b"open"
    rig.call(rig.device.stall, END_OUT)
    with pytest.raises(usb.core.USBError):
        device.write(END_OUT, b"x", LONG)
    device.clear_halt(END_OUT)
    device.write(END_OUT, b"x", LONG)


def test_reading_and_writing_threads_do_not_wait_for_each_other(rig: Rig, device: Any) -> None:
    usb.util.claim_interface(device, 0)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(device.read(END_IN, 4096, LONG).tobytes()))
    reader.start()
    for number in range(50):
        device.write(END_OUT, b"%d" % number, LONG)
    assert len(rig.heard) == 50
    assert not got
    rig.call(rig.device.write, b"at last")
    reader.join(5)
    assert got == [b"at last"]


def test_closing_a_handle_wakes_a_pending_read(rig: Rig, bus: Path) -> None:
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


def test_longer_transfers_than_a_message(rig: Rig, device: Any) -> None:
    frame = bytes(range(255, -1, -1))
    data = frame * 200 + b"an end"
    assert device.write(END_OUT, data, LONG) == len(data)
    assert b"".join(rig.heard) == data
    rig.call(rig.device.write, data)
    assert device.read(END_IN, 60_000, SHORT).tobytes() == data[:MAX_WAITING]
    rig.call(rig.device.write, b"x" + data)
    whole = (MAX_WAITING - 1) // len(frame) * len(frame)
    assert device.read(END_IN, 60_000, SHORT).tobytes() == (b"x" + data)[: whole + 1]


# --- the endpoints alone --------------------------------------------------------------------------


def test_packets_end_with_a_short_one() -> None:
    sizes = {size: [len(packet) for packet in packets(bytes(size))] for size in (0, 63, 64, 130)}
    assert sizes == {0: [0], 63: [63], 64: [64, 0], 130: [64, 64, 2]}


def test_without_a_host_the_endpoint_keeps_two_packets() -> None:
    pipe = InPipe()
    frame = b"x" * 69 + b"\0"
    pipe.send(frame * 3, claimed=False)
    assert pipe.lost == 2 * len(frame)  # by whole frames
    pipe.send(b"x\0", claimed=False)
    assert pipe.lost == 2 * len(frame) + 2
    assert [done.data for done in pipe.read(1, 4096)] == [frame]
    pipe.send(bytes(128), claimed=False)
    assert [done.data for done in pipe.read(1, 4096)] == [bytes(127)]


def test_a_cancelled_read_returns_what_has_arrived() -> None:
    pipe = InPipe()
    pipe.send(bytes(200), claimed=True)
    assert pipe.read(7, 300)[0].count == 200
    assert pipe.read(7, 300) == []
    (done,) = pipe.cancel(7)
    assert (done.number, done.arg, done.count) == (7, UsbStatus.TIMEOUT, 0)


def test_a_transfer_without_end_is_taken_when_the_buffer_is_full() -> None:
    pipe = OutPipe(lambda: True)
    for number in range(64):
        pipe.write(number, bytes(64))
    assert [len(transfer) for transfer in pipe.take()] == [4096]
