"""`holecard devices` init, list, show, forget and ports."""

import io
import json
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import usb.backend.libusb1
from serial.tools import list_ports

from controller import terminal
from controller.cli import main
from drivers.keys import KeyStore, PairedDevice, keys_directory
from firmware_protocol.messages import DeviceClass
from tests.support.commands import Says

AT = "2026-07-29T17:30:00Z"
TWO = ["--by", "Ann", "--and", "Bo"]


def paired(serial: str) -> PairedDevice:
    return PairedDevice(
        DeviceClass.SHOE, serial, "Maker", "Shoe", bytes(range(32)), AT, ("Cid", "Dee")
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyStore:
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    made = KeyStore.create(tmp_path / "keys")
    for serial in ("SH-2", "SH-1"):
        made.add(paired(serial))
    return made


def devices(*arguments: str) -> int:
    return main(["devices", *arguments])


def test_where_the_keys_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOLECARD_KEYS", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert keys_directory(None) == tmp_path / ".config/holecard/keys"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc")
    assert keys_directory(None) == Path("/etc/holecard/keys")
    monkeypatch.setenv("HOLECARD_KEYS", "/keys")
    assert keys_directory(None) == Path("/keys")
    assert keys_directory(Path("here")) == Path("here")


def test_init_makes_the_keys_once(tmp_path: Path, said: Says) -> None:
    place = tmp_path / "deep/keys"
    made = said(devices("init", "--keys", str(place), "--json")).json
    assert made["keys"] == str(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert said(devices("init", "--keys", str(place))).refused(
        "the host has its key already; allowed: another directory"
    )
    assert said(devices("list", "--keys", str(place))) == (
        0,
        f"this host's key: {made['host']}\nno device is paired\n",
        "",
    )


def test_list(store: KeyStore, said: Says) -> None:
    own, *lines = said(devices("list")).out.splitlines()
    assert own.startswith("this host's key: ")
    assert [line.split()[:2] for line in lines] == [["shoe", "SH-1"], ["shoe", "SH-2"]]
    found = said(devices("list", "--json")).json
    assert found["host"] == own.removeprefix("this host's key: ")
    assert found["devices"][0] == {
        "class": "shoe",
        "serial": "SH-1",
        "maker": "Maker",
        "model": "Shoe",
        "fingerprint": paired("SH-1").fingerprint,
        "paired_at": AT,
        "by": ["Cid", "Dee"],
    }


def test_show(store: KeyStore, said: Says) -> None:
    assert said(devices("show", "SH-1")).told(
        "serial number  SH-1\n", f"paired         {AT} by Cid and Dee\n"
    )
    assert said(devices("show", "SH-1", "--json")).json["serial"] == "SH-1"
    assert said(devices("show", "SH-9")) == (
        2,
        "",
        "holecard: SERIAL: SH-9 is not paired; allowed: SH-1, SH-2\n",
    )
    assert said(devices("show", "../host")).refused("is no serial number; allowed: 1 to 20 letters")


def test_forget_takes_two_people(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    assert said(devices("forget", "SH-1")).refused("--by: is missing: two people must approve")
    assert said(devices("forget", "SH-1", "--by", "Ann", "--and", "ann")).refused(
        "--and: 'ann' is the same person"
    )
    assert said(devices("forget", "SH-9", *TWO)).refused("SH-9 is not paired; allowed: SH-1, SH-2")
    assert len(store.devices()) == 2
    assert said(devices("forget", "SH-1", *TWO)).told("forgotten: shoe     SH-1 ")
    assert [one.serial for one in store.devices()] == ["SH-2"]
    monkeypatch.setattr(terminal, "at_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Bo\n"))
    assert said(devices("forget", "SH-2", "--by", "Ann", "--json")).json["serial"] == "SH-2"
    assert said(devices("show", "SH-2")).refused("SH-2 is not paired; allowed: none is paired yet")
    last = json.loads((store.directory / "history.jsonl").read_text().splitlines()[-1])
    assert (last["what"], last["by"]) == ("forgotten", ["Ann", "Bo"])


@pytest.mark.parametrize("command", [["list"], ["show", "SH-1"], ["forget", "SH-1", *TWO]])
def test_keys_that_cannot_be_used(store: KeyStore, said: Says, command: list[str]) -> None:
    assert said(devices(*command, "--keys", str(store.directory / "none"))).refused(
        "none: there is no such directory; allowed: "
    )
    file = store.directory / "devices/SH-1.json"
    file.chmod(0o644)
    assert said(devices(*command)).refused(
        f"{file}: others may touch it (mode 644); allowed: mode 600: chmod 600 {file}\n"
    )
    file.chmod(0o600)
    file.write_text("{}")
    assert said(devices(*command)).refused(f"{file}: is damaged: ")


def test_ports(monkeypatch: pytest.MonkeyPatch, said: Says) -> None:
    listed = [
        SimpleNamespace(
            device="/dev/ttyUSB0", serial_number="A1", manufacturer="FTDI", product="Cable"
        ),
        SimpleNamespace(device="/dev/ttyS0", serial_number=None, manufacturer=None, product=None),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: listed)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda: None)
    code, out, err = said(devices("ports"))
    assert (code, out) == (0, "serial:/dev/ttyS0\nadapter:A1  /dev/ttyUSB0  FTDI  Cable\n")
    assert "no USB devices are listed: USB needs the library libusb 1.0" in err
    ports = said(devices("ports", "--json")).json["ports"]
    assert [port["port"] for port in ports] == ["serial:/dev/ttyS0", "adapter:A1"]
    assert said(devices("ports", "--usb", "none")).refused(
        "--usb: there is no USB backend none; installed: "
    )
    listed.clear()
    assert said(devices("ports"))[:2] == (0, "nothing is plugged in\n")


def test_what_a_device_calls_itself_commands_no_terminal(
    monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    evil = "\x1b]0;pwn\x07\u202e"
    listed = [
        SimpleNamespace(device="/dev/ttyUSB0", serial_number=evil, manufacturer=evil, product=evil)
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: listed)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda: None)
    for more in ((), ("--json",)):
        answer = said(devices("ports", *more))
        assert answer.told("serial:/dev/ttyUSB0", "]0;pwn")
        assert answer.out.replace("\n", "").isprintable()


def test_help_says_where_the_keys_lie(said: Says) -> None:
    for arguments in (["--help"], ["pair", "--help"], ["init", "--help"]):
        assert said(devices(*arguments)).told("$HOLECARD_KEYS")
    assert main(["devices"]) == 2
