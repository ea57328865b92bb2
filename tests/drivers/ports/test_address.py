"""Addresses of ports: what may be written, and which port is opened for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports

from drivers.ports import (
    Address,
    AddressProblem,
    PortRefused,
    Transport,
    UsbPlace,
    discovery,
    open_port,
    parse,
    parse_placed,
)
from drivers.ports import serial as serial_port
from drivers.ports import usb as usb_port
from tests.support.drivers.listening import Listener


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
