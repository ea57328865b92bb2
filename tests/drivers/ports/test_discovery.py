"""Looking for what is plugged in, while it is pulled out and while it lies."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serial.tools import list_ports, list_ports_linux

from drivers.ports import (
    Address,
    AddressProblem,
    FoundPort,
    PortRefused,
    Transport,
    UsbPlace,
    discovery,
    open_port,
    parse,
    parse_placed,
    usb_discovery,
)
from drivers.ports import serial as serial_port
from drivers.ports import usb as usb_port
from drivers.ports.usb_discovery import Unit
from drivers.session import PortSearch, WantedDevice, lookup
from firmware_protocol.messages import DeviceClass
from tests.support.asynchronous import asynchronous
from tests.support.drivers.fake_usb import FakeDevice, failure, plugged
from tests.support.drivers.listening import Listener

NAME = "fake=bus"
WANTED = WantedDevice(DeviceClass.SHOE, "SH-1", bytes(32), backend=NAME)


def port(path: str, number: str | None, *, maker: str = "FTDI", model: str = "Cable") -> Any:
    return SimpleNamespace(
        device=path, serial_number=number, manufacturer=maker, product=model, subsystem="usb"
    )


def unit_of(serial: str) -> Unit:
    return usb_discovery.find(
        Address(Transport.USB, serial, NAME), usb_discovery.load_backend(NAME)
    )


@pytest.fixture
def bus(announced: None) -> Iterator[list[FakeDevice]]:
    with plugged("bus", FakeDevice("SH-0"), FakeDevice("SH-1")) as devices:
        yield devices


# --- what is pulled out while it is looked at -----------------------------------------------------


@pytest.fixture
def one_that_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two ports, the first of which is pulled out just then; as pyserial says that."""
    for name in ("ttyUSB0", "ttyUSB1"):
        (tmp_path / name).write_text("")

    def comports() -> list[Any]:
        return [look(str(file)) for file in sorted(tmp_path.iterdir())]

    def look(path: str) -> Any:
        if path.endswith("0"):
            raise TypeError("int() can't convert non-string with explicit base")
        return port(path, "A")

    monkeypatch.setattr(discovery, "DEVICES", tmp_path)
    monkeypatch.setattr(list_ports, "comports", comports)
    monkeypatch.setattr(list_ports_linux, "SysFS", look)
    return tmp_path


def test_a_port_that_goes_while_it_is_listed_hides_no_other(one_that_goes: Path) -> None:
    assert [one.path for one in discovery.serial_ports()] == [f"{one_that_goes}/ttyUSB1"]
    assert discovery.adapter_path("A") == f"{one_that_goes}/ttyUSB1"


@pytest.mark.parametrize("problem", [OSError(errno.EIO, "I/O"), ValueError("no text")])
def test_ports_that_cannot_be_listed_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, problem: Exception
) -> None:
    def fail(*_: object) -> Any:
        raise problem

    monkeypatch.setattr(discovery, "DEVICES", tmp_path / "none")
    monkeypatch.setattr(list_ports, "comports", fail)
    monkeypatch.setattr(list_ports_linux, "SysFS", fail)
    assert discovery.serial_ports() == []


def test_names_of_ports_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """udev takes them away while they are read."""
    monkeypatch.setattr(list_ports, "comports", lambda: [port("/dev/ttyUSB0", None)])
    monkeypatch.setattr(discovery, "BY_ID", tmp_path)

    def fail(self: Path) -> Any:
        raise FileNotFoundError(errno.ENOENT, "gone")

    monkeypatch.setattr(Path, "iterdir", fail)
    assert [str(one.address) for one in discovery.serial_ports()] == ["serial:/dev/ttyUSB0"]


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.EIO])
def test_a_bus_that_cannot_be_looked_at(
    bus: list[FakeDevice], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(self: object) -> Any:
        raise failure(number)

    monkeypatch.setattr("tests.support.drivers.fake_usb.FakeBackend.enumerate_devices", fail)
    with pytest.raises(PortRefused, match="the USB bus cannot be looked at"):
        discovery.usb_devices(NAME)
    with pytest.raises(PortRefused, match="the USB bus cannot be looked at"):
        unit_of("SH-1")


@pytest.mark.parametrize(
    "function", ["get_device_descriptor", "get_configuration_descriptor", "close_device"]
)
@pytest.mark.parametrize(
    "problem", [failure(errno.ENODEV), ValueError("odd"), TypeError("odd"), IndexError("odd")]
)
def test_a_usb_device_that_goes_or_is_odd_hides_no_other(
    bus: list[FakeDevice], function: str, problem: Exception
) -> None:
    bus[0].fails[function] = problem
    assert "SH-1" in [one.serial for one in discovery.usb_devices(NAME)]
    unit = unit_of("SH-1")
    assert unit.device.serial_number == "SH-1"
    usb_discovery.release(unit.device)


def test_a_number_that_is_no_text_is_no_question_of_permission(bus: list[FakeDevice]) -> None:
    bus[0].raw_texts[3] = b"\x00\xd8"  # half of a character
    with pytest.raises(PortRefused) as caught:
        unit_of("SH-9")
    assert caught.value.absent


# --- what lies ------------------------------------------------------------------------------------


EVIL = "\x1b]0;pwn\x07"


def test_what_devices_say_of_themselves_is_shown_plain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bus: list[FakeDevice]
) -> None:
    ports = [
        port("/dev/ttyUSB0", f"A{EVIL}", maker=EVIL, model="\u202eevil\u2066"),
        port("/dev/ttyUSB1", "B" * 200, maker="M" * 200, model=" two  words "),
        port("/dev/ttyUSB2", "good"),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    monkeypatch.setattr(discovery, "BY_ID", tmp_path / "none")
    bus[0].texts = {1: EVIL, 2: "y" * 100, 3: f"SH{EVIL}"}
    bus[1].texts[1] = EVIL
    found = discovery.serial_ports() + discovery.usb_devices(NAME)
    for one in found:
        for text in (str(one.address), one.serial, one.maker, one.model):
            assert text is None or (text.isprintable() and len(text) <= 200), one
        assert len(one.maker or "") <= discovery.MAX_TEXT
    assert [str(one.address) for one in found] == [
        "serial:/dev/ttyUSB0",
        "serial:/dev/ttyUSB1",
        "adapter:good",
        "usb+fake=bus:SH-1",
    ]
    for one in found:
        assert parse(str(one.address)) == one.address


# --- which of several -----------------------------------------------------------------------------


def visits(search: PortSearch, wanted: WantedDevice, count: int) -> list[str]:
    async def run() -> list[str]:
        return [str(await search(wanted)) for _ in range(count)]

    return asyncio.run(run())


def test_all_that_have_the_number_are_tried_in_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bus: list[FakeDevice]
) -> None:
    monkeypatch.setattr(discovery, "BY_ID", tmp_path / "none")
    monkeypatch.setattr(
        list_ports, "comports", lambda: [port("/dev/ttyACM0", "SH-1"), port("/dev/ttyACM1", "X")]
    )
    bus.append(FakeDevice("SH-1"))
    assert visits(PortSearch(), WANTED, 4) == [
        "adapter:SH-1",
        "usb+fake=bus:SH-1 (bus 1 address 2)",
        "usb+fake=bus:SH-1 (bus 1 address 3)",
        "adapter:SH-1",
    ]
    monkeypatch.setattr(
        list_ports, "comports", lambda: [port("/dev/ttyACM0", "SH-1"), port("/dev/ttyACM1", "SH-1")]
    )
    assert visits(PortSearch(), WANTED, 3) == [
        "serial:/dev/ttyACM0",
        "serial:/dev/ttyACM1",
        "usb+fake=bus:SH-1 (bus 1 address 2)",
    ]


def test_a_written_usb_address_does_not_say_which_of_two_either(bus: list[FakeDevice]) -> None:
    where = Address(Transport.USB, "SH-1", NAME)
    named = WantedDevice(DeviceClass.SHOE, "SH-1", bytes(32), where)
    assert visits(PortSearch(), named, 2) == ["usb+fake=bus:SH-1"] * 2
    bus.append(FakeDevice("SH-1"))
    assert visits(PortSearch(), named, 3) == [
        "usb+fake=bus:SH-1 (bus 1 address 2)",
        "usb+fake=bus:SH-1 (bus 1 address 3)",
        "usb+fake=bus:SH-1 (bus 1 address 2)",
    ]
    bus.clear()
    assert visits(PortSearch(), named, 1) == [
        "usb+fake=bus:SH-1"
    ]  # opening it says that it is absent


@asynchronous
async def test_the_very_one_of_two_is_opened(bus: list[FakeDevice]) -> None:
    second = FakeDevice("SH-1")
    bus.append(second)
    search = PortSearch()
    for at, device in ((2, bus[1]), (3, second)):
        opened = await open_port(await search(WANTED), Listener())
        assert (opened.name, device.did["claim_interface"]) == (f"SH-1 (bus 1 address {at})", 1)
        await opened.close()


def test_without_a_usb_library_serial_ports_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none(_: str) -> list[FoundPort]:
        raise PortRefused("no library")

    monkeypatch.setattr(lookup, "usb_devices", none)
    monkeypatch.setattr(list_ports, "comports", lambda: [port("/dev/ttyACM0", "SH-1")])
    assert visits(PortSearch(), WANTED, 1) == ["adapter:SH-1"]
    monkeypatch.setattr(list_ports, "comports", list)
    with pytest.raises(PortRefused, match="no library"):
        visits(PortSearch(), WANTED, 1)


def test_the_machine_is_not_asked_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[threading.Thread] = []

    def path(number: str) -> str:
        asked.append(threading.current_thread())
        return f"/dev/{number}"

    async def serial(path: str, listener: object) -> None:
        assert path == "/dev/A1"

    monkeypatch.setattr(discovery, "adapter_path", path)
    monkeypatch.setattr(serial_port, "open_serial", serial)
    asyncio.run(open_port(Address(Transport.ADAPTER, "A1"), Listener()))
    assert asked
    assert asked[0] is not threading.main_thread()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("serial:/dev/ttyUSB0", Address(Transport.SERIAL, "/dev/ttyUSB0")),
        ("/dev/serial/by-id/x:y", Address(Transport.SERIAL, "/dev/serial/by-id/x:y")),
        ("serial:./run/shoe", Address(Transport.SERIAL, "./run/shoe")),
        ("run/shoe/port", Address(Transport.SERIAL, "run/shoe/port")),
        ("./a:b", Address(Transport.SERIAL, "./a:b")),
        ("adapter:FT4NUM9K", Address(Transport.ADAPTER, "FT4NUM9K")),
        ("usb:SH-0042", Address(Transport.USB, "SH-0042")),
        ("usb:a.b_c-d", Address(Transport.USB, "a.b_c-d")),
        ("usb+sim=/run/bus:SH-1", Address(Transport.USB, "SH-1", "sim=/run/bus")),
        ("usb+sim=/a:b:SH-1", Address(Transport.USB, "SH-1", "sim=/a:b")),
        ("usb+openusb:SH-1", Address(Transport.USB, "SH-1", "openusb")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse(text) == parse_placed(text) == address
    assert parse(str(address)) == address


@pytest.mark.parametrize("backend", ["libusb1", "sim=/a b:c"])
@pytest.mark.parametrize("place", [UsbPlace(1, 2), UsbPlace(0, 0), UsbPlace(127, 127)])
def test_one_of_several_is_read_as_it_is_listed(backend: str, place: UsbPlace) -> None:
    address = Address(Transport.USB, "SH-7", backend, place)
    assert parse_placed(str(address)) == address
    with pytest.raises(AddressProblem):
        parse(str(address))  # what a table file says is true tomorrow too


@pytest.mark.parametrize(
    "text",
    [
        "usb: (bus 1 address 2)",
        "usb:SH-7(bus 1 address 2)",
        "usb:SH-7 (bus x address 2)",
        "usb:SH-7 (bus 1 address 1234)",
        "adapter:A B (bus 1 address 2)",
        "ttyUSB0 (bus 1 address 2)",
    ],
)
def test_a_place_makes_no_address_of_what_is_none(text: str) -> None:
    with pytest.raises(AddressProblem):
        parse_placed(text)


@pytest.mark.parametrize(
    ("text", "what", "allowed"),
    [
        ("", "'' is no address of a port", "serial:PATH or /dev/..."),
        ("ttyUSB0", "'ttyUSB0' is no address of a port", "usb:SERIAL"),
        ("tcp:host", "'tcp:host' is no address of a port", "usb+BACKEND=ARGUMENT:SERIAL"),
        ("serial:", "'' is no path of a serial port", "serial:/dev/..."),
        ("serial:ttyUSB0", "'ttyUSB0' is no path", "serial:/dev/..."),
        ("serial:/dev/", "'/dev/' is no path", "serial:/dev/..."),
        ("/dev/a\0b", "is no path", "serial:/dev/..."),
        ("adapter:", "'' is no serial number of an adapter", "adapter:SERIAL"),
        ("adapter:two words", "no serial number of an adapter", "adapter:SERIAL"),
        ("usb:", "'' is no serial number of a device", "1 to 20 letters"),
        ("usb:" + "x" * 21, "is no serial number", "1 to 20 letters"),
        ("usb:SH/1", "'SH/1' is no serial number", "1 to 20 letters"),
        ("usb+sim=/bus", "'usb+sim=/bus' names no backend and serial number", "usb+BACKEND"),
        ("usb+:SH-1", "names no backend", "usb+BACKEND"),
        ("usb+sim=:SH-1", "names no backend", "usb+BACKEND"),
        ("usb+sim=/bus:", "'' is no serial number", "1 to 20 letters"),
    ],
)
def test_what_is_no_address(text: str, what: str, allowed: str) -> None:
    with pytest.raises(AddressProblem) as caught:
        parse(text)
    assert what in caught.value.what
    assert allowed in caught.value.allowed
    assert str(caught.value) == f"{caught.value.what}; allowed: {caught.value.allowed}"


def test_each_transport_has_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    async def serial(path: str, listener: object) -> None:
        asked.append(("serial", path))

    async def usb(number: str, listener: object, *, backend: str, place: object) -> None:
        asked.append(("usb", number, backend))

    monkeypatch.setattr(serial_port, "open_serial", serial)
    monkeypatch.setattr(usb_port, "open_usb", usb)
    monkeypatch.setattr(discovery, "adapter_path", lambda number: f"/dev/tty{number}")

    async def run() -> None:
        for text in ("/dev/x", "adapter:A1", "usb:S1", "usb+sim=/b:S1"):
            await open_port(parse(text), Listener())

    asyncio.run(run())
    assert asked == [
        ("serial", "/dev/x"),
        ("serial", "/dev/ttyA1"),
        ("usb", "S1", "libusb1"),
        ("usb", "S1", "sim=/b"),
    ]


# --- what is plugged in -----------------------------------------------------------------------


def plug(monkeypatch: pytest.MonkeyPatch, place: Path, *ports: tuple[str, str | None]) -> None:
    place.mkdir(exist_ok=True)
    listed = [
        SimpleNamespace(
            device=str(place / name), serial_number=number, manufacturer="FTDI", product="Cable"
        )
        for name, number in ports
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: listed)


def test_an_adapter_is_found_by_its_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plug(monkeypatch, tmp_path, ("ttyUSB1", "B"), ("ttyUSB0", "A"), ("ttyUSB2", "B"))
    assert discovery.adapter_path("A") == f"{tmp_path}/ttyUSB0"
    plug(monkeypatch, tmp_path, ("ttyUSB1", "A"))
    assert discovery.adapter_path("A") == f"{tmp_path}/ttyUSB1"  # came back under another name
    plug(monkeypatch, tmp_path, ("ttyUSB1", "B"), ("ttyUSB2", "B"))
    with pytest.raises(PortRefused, match="no such adapter is plugged in") as caught:
        discovery.adapter_path("A")
    assert caught.value.absent
    with pytest.raises(PortRefused, match=r"has 2 ports \(.*ttyUSB1, .*ttyUSB2\)") as caught:
        discovery.adapter_path("B")
    assert not caught.value.absent


def test_ports_are_listed_by_the_names_that_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plug(
        monkeypatch,
        tmp_path / "dev",
        ("ttyUSB0", "A"),
        ("ttyUSB1", "B"),
        ("ttyUSB2", "B"),
        ("ttyS0", None),
    )
    by_id = tmp_path / "by-id"
    monkeypatch.setattr(discovery, "BY_ID", by_id)
    assert len(discovery.serial_ports()) == 4  # where udev made no names
    by_id.mkdir()
    (tmp_path / "dev/ttyUSB1").write_text("")
    (by_id / "usb-B-if00").symlink_to("../dev/ttyUSB1")
    found = discovery.serial_ports()
    assert [(one.path, str(one.address)) for one in found] == [
        (f"{tmp_path}/dev/ttyS0", f"serial:{tmp_path}/dev/ttyS0"),
        (f"{tmp_path}/dev/ttyUSB0", "adapter:A"),
        (f"{tmp_path}/dev/ttyUSB1", f"serial:{by_id}/usb-B-if00"),
        (f"{tmp_path}/dev/ttyUSB2", f"serial:{tmp_path}/dev/ttyUSB2"),
    ]
