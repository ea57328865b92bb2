"""The simulated USB bus through pyusb: found, opened, claimed, pulled out, put back."""

import asyncio
import errno
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import usb.core
import usb.util

from hil.ports import UsbStatus, usb_bus
from hil.ports.usb_backend import backend
from hil.ports.usb_messages import END_IN, END_OUT
from tests.support.hil.conform.usb_rig import LONG, NAMES, SHORT, Rig, a_rig, find, scene


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    return tmp_path / "usb"


def test_a_device_is_found_with_the_descriptors_of_the_protocol(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        assert (device.manufacturer, device.product, device.serial_number) == NAMES
        assert device.address == rig.device.address
        interface = device.get_active_configuration()[(0, 0)]
        triple = (
            interface.bInterfaceClass,
            interface.bInterfaceSubClass,
            interface.bInterfaceProtocol,
        )
        assert triple == (0xFF, 0x54, 0x01)
        ends = {end.bEndpointAddress: end for end in interface}
        assert sorted(ends) == [END_OUT, END_IN]
        assert {end.wMaxPacketSize for end in ends.values()} == {64}
        assert {usb.util.endpoint_type(end.bmAttributes) for end in ends.values()} == {
            usb.util.ENDPOINT_TYPE_BULK
        }
        assert "SH-0001" in str(device)
        raw = device.ctrl_transfer(0x80, 6, 0x0200, 0, 255).tobytes()
        assert len(raw) == raw[2] == 32
        assert raw[9:18] == bytes((9, 4, 0, 0, 2, 0xFF, 0x54, 0x01, 0))
        assert device.ctrl_transfer(0x80, 6, 0x0100, 0, 18).tobytes()[8:12] == b"\x09\x12\x01\x00"
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_unknown_control_transfers_stall(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        with pytest.raises(usb.core.USBError) as stalled:
            device.ctrl_transfer(0xC0, 0x33, 0, 0, 8)
        assert (stalled.value.errno, stalled.value.backend_error_code) == (errno.EPIPE, -9)
        with pytest.raises(ValueError, match="Invalid configuration"):
            device.set_configuration(2)
        device.set_configuration()
        assert not device.is_kernel_driver_active(0)
        with pytest.raises(usb.core.USBError):
            device.detach_kernel_driver(0)
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_one_handle_claims_and_others_get_busy(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        first, second = find(bus), find(bus)
        usb.util.claim_interface(first, 0)
        for attempt in (
            lambda: usb.util.claim_interface(second, 0),
            lambda: second.write(END_OUT, b"x", SHORT),
            second.set_configuration,
        ):
            with pytest.raises(usb.core.USBError) as busy:
                attempt()
            assert (busy.value.errno, busy.value.backend_error_code) == (errno.EBUSY, -6)
        assert second.serial_number == "SH-0001"  # endpoint 0 is for everybody
        usb.util.release_interface(first, 0)
        second.write(END_OUT, b"x", LONG)
        assert rig.heard == [b"x"]
        usb.util.dispose_resources(second)
        first.write(END_OUT, b"y", LONG)
        assert rig.heard == [b"x", b"y"]
        usb.util.dispose_resources(first)

    scene(bus, host)


_OTHER_PROCESS = """
import sys, usb.core, usb.util
from hil.ports.usb_backend import backend
device = usb.core.find(backend=backend(sys.argv[1]))
usb.util.claim_interface(device, 0)
print("claimed", flush=True)
sys.stdin.read()
"""


def test_another_process_has_it_until_it_is_killed(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        command = [sys.executable, "-c", _OTHER_PROCESS, str(bus)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"claimed\n"
            device = find(bus)
            with pytest.raises(usb.core.USBError) as busy:
                usb.util.claim_interface(device, 0)
            assert busy.value.errno == errno.EBUSY
            other.kill()
        device.write(END_OUT, b"free again", LONG)
        assert rig.heard == [b"free again"]
        usb.util.dispose_resources(device)

    scene(bus, host)


@pytest.mark.parametrize(
    ("gone", "number", "code"), [(UsbStatus.NO_DEVICE, 19, -4), (UsbStatus.IO, 5, -1)]
)
def test_a_read_that_waits_when_the_cable_is_pulled(
    bus: Path, gone: UsbStatus, number: int, code: int
) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        later = threading.Timer(0.02, call, (rig.device.unplug,))
        later.start()
        with pytest.raises(usb.core.USBError) as pulled:
            device.read(END_IN, 64, LONG)
        later.join()
        assert (pulled.value.errno, pulled.value.backend_error_code) == (number, code)
        for _ in range(2):  # from then on it is ENODEV everywhere
            attempts: tuple[Callable[[], object], ...] = (
                lambda: device.read(END_IN, 64, SHORT),
                lambda: device.write(END_OUT, b"x", SHORT),
                lambda: device.ctrl_transfer(0x80, 8, 0, 0, 1),
            )
            for attempt in attempts:
                with pytest.raises(usb.core.USBError) as later_on:
                    attempt()
                assert later_on.value.errno == errno.ENODEV
        assert find(bus) is None
        usb.util.dispose_resources(device)
        with pytest.raises(usb.core.USBError) as opened:
            device.read(END_IN, 64, SHORT)
        assert opened.value.errno == errno.ENODEV

    scene(bus, host, gone=gone)


def test_a_replug_assigns_a_new_address_and_drops_transfers(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(bus)
        device.write(END_OUT, bytes(64), LONG)  # and its end never comes
        call(rig.device.write, b"not read")
        call(rig.device.unplug)
        call(rig.device.plug)
        again = find(bus)
        assert again.serial_number == "SH-0001"
        assert again.address != device.address
        again.write(END_OUT, b"new", LONG)
        assert rig.heard == [b"new"]
        with pytest.raises(usb.core.USBTimeoutError):
            again.read(END_IN, 64, SHORT)
        usb.util.dispose_resources(again)
        usb.util.dispose_resources(device)

    scene(bus, host)


def test_several_devices_share_a_bus_and_keep_apart(bus: Path) -> None:
    async def play() -> None:
        async with a_rig(bus) as one, a_rig(bus) as two:

            def host() -> None:
                found = list(usb.core.find(find_all=True, backend=backend(str(bus))))
                assert [device.address for device in found] == [
                    one.device.address,
                    two.device.address,
                ]
                found[1].write(END_OUT, b"second", LONG)
                for device in found:
                    usb.util.dispose_resources(device)

            await asyncio.to_thread(host)
            assert (one.ears, two.ears) == ([], [b"second"])

    asyncio.run(play())


def test_addresses_go_round_and_the_living_keep_theirs(bus: Path) -> None:
    async def play() -> None:
        async with a_rig(bus) as one:
            first = one.device.address
            (bus / "last-address").write_text("126\n")
            async with a_rig(bus) as two, a_rig(bus) as three:
                assert (first, two.device.address, three.device.address) == (1, 127, 2)

    asyncio.run(play())


def test_a_socket_of_a_killed_device_is_no_device(bus: Path) -> None:
    bus.mkdir()
    left = bus / "device-001"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(left))
    assert left.exists()
    assert find(bus) is None

    async def play() -> None:
        async with a_rig(bus) as rig:
            assert rig.device.address == 1

    asyncio.run(play())
    assert [path.name for path in bus.iterdir()] == ["last-address"]


def test_a_bus_in_a_folder_with_a_very_long_name(tmp_path: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        device = find(rig.bus)
        device.write(END_OUT, b"far away", LONG)
        assert rig.heard == [b"far away"]
        usb.util.dispose_resources(device)

    scene(tmp_path / ("long" * 50) / "usb", host)


def test_no_bus_and_no_directory(tmp_path: Path) -> None:
    assert find(tmp_path / "not yet") is None
    (tmp_path / "file").write_text("")
    for wrong in ("", str(tmp_path / "file")):
        with pytest.raises(NotADirectoryError, match="allowed: the directory of a bus"):
            backend(wrong)


def test_a_bus_that_is_full(bus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usb_bus, "ADDRESSES", 1)

    async def play() -> None:
        async with a_rig(bus):
            with pytest.raises(usb_bus.BusFull):
                Rig(bus)

    asyncio.run(play())


def test_nonsense_on_the_socket_ends_that_connection_only(bus: Path) -> None:
    def host(rig: Rig, call: Callable[..., None]) -> None:
        for nonsense in (b"x", b"\xff" * 40, bytes(13), b"\x03" + bytes(12), b"\x02" + bytes(12)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as strange:
                strange.settimeout(5)
                strange.connect(str(bus / f"device-{rig.device.address:03d}"))
                strange.send(nonsense)
                strange.recv(100)
        assert find(bus) is not None

    scene(bus, host)
