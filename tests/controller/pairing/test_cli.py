"""`holecard devices` init, list, show, forget and ports."""

from __future__ import annotations

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


def test_init_makes_the_keys_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "deep/keys"
    assert devices("init", "--keys", str(place), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["keys"] == str(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert devices("init", "--keys", str(place)) == 2
    assert "the host has its key already; allowed: another directory" in capsys.readouterr().err
    assert devices("list", "--keys", str(place)) == 0
    assert capsys.readouterr().out == f"this host's key: {made['host']}\nno device is paired\n"


def test_list(store: KeyStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert devices("list") == 0
    own, *lines = capsys.readouterr().out.splitlines()
    assert own.startswith("this host's key: ")
    assert [line.split()[:2] for line in lines] == [["shoe", "SH-1"], ["shoe", "SH-2"]]
    assert devices("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
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


def test_show(store: KeyStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert devices("show", "SH-1") == 0
    out = capsys.readouterr().out
    assert "serial number  SH-1\n" in out
    assert f"paired         {AT} by Cid and Dee\n" in out
    assert devices("show", "SH-1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["serial"] == "SH-1"
    assert devices("show", "SH-9") == 2
    assert capsys.readouterr().err == (
        "holecard: SERIAL: SH-9 is not paired; allowed: SH-1, SH-2\n"
    )
    assert devices("show", "../host") == 2
    assert "is no serial number; allowed: 1 to 20 letters" in capsys.readouterr().err


def test_forget_takes_two_people(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert devices("forget", "SH-1") == 2
    assert "--by: is missing: two people must approve" in capsys.readouterr().err
    assert devices("forget", "SH-1", "--by", "Ann", "--and", "ann") == 2
    assert "--and: 'ann' is the same person" in capsys.readouterr().err
    assert devices("forget", "SH-9", *TWO) == 2
    assert "SH-9 is not paired; allowed: SH-1, SH-2" in capsys.readouterr().err
    assert len(store.devices()) == 2
    assert devices("forget", "SH-1", *TWO) == 0
    assert capsys.readouterr().out.startswith("forgotten: shoe     SH-1 ")
    assert [one.serial for one in store.devices()] == ["SH-2"]
    monkeypatch.setattr(terminal, "at_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Bo\n"))
    assert devices("forget", "SH-2", "--by", "Ann", "--json") == 0
    assert json.loads(capsys.readouterr().out)["serial"] == "SH-2"
    assert devices("show", "SH-2") == 2
    assert "SH-2 is not paired; allowed: none is paired yet" in capsys.readouterr().err
    last = json.loads((store.directory / "history.jsonl").read_text().splitlines()[-1])
    assert (last["what"], last["by"]) == ("forgotten", ["Ann", "Bo"])


@pytest.mark.parametrize("command", [["list"], ["show", "SH-1"], ["forget", "SH-1", *TWO]])
def test_keys_that_cannot_be_used(
    store: KeyStore, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert devices(*command, "--keys", str(store.directory / "none")) == 2
    assert "none: there is no such directory; allowed: " in capsys.readouterr().err
    file = store.directory / "devices/SH-1.json"
    file.chmod(0o644)
    assert devices(*command) == 2
    assert f"{file}: others may touch it (mode 644); allowed: mode 600: chmod 600 {file}\n" in (
        capsys.readouterr().err
    )
    file.chmod(0o600)
    file.write_text("{}")
    assert devices(*command) == 2
    assert f"{file}: is damaged: " in capsys.readouterr().err


def test_ports(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    listed = [
        SimpleNamespace(
            device="/dev/ttyUSB0", serial_number="A1", manufacturer="FTDI", product="Cable"
        ),
        SimpleNamespace(device="/dev/ttyS0", serial_number=None, manufacturer=None, product=None),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: listed)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda: None)
    assert devices("ports") == 0
    out, err = capsys.readouterr()
    assert out == "serial:/dev/ttyS0\nadapter:A1  /dev/ttyUSB0  FTDI  Cable\n"
    assert "no USB devices are listed: USB needs the library libusb 1.0" in err
    assert devices("ports", "--json") == 0
    ports = json.loads(capsys.readouterr().out)["ports"]
    assert [port["port"] for port in ports] == ["serial:/dev/ttyS0", "adapter:A1"]
    assert devices("ports", "--usb", "none") == 2
    assert "--usb: there is no USB backend none; installed: " in capsys.readouterr().err
    listed.clear()
    assert devices("ports") == 0
    assert capsys.readouterr().out == "nothing is plugged in\n"


def test_what_a_device_calls_itself_commands_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;pwn\x07\u202e"
    listed = [
        SimpleNamespace(device="/dev/ttyUSB0", serial_number=evil, manufacturer=evil, product=evil)
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: listed)
    monkeypatch.setattr(usb.backend.libusb1, "get_backend", lambda: None)
    for more in ((), ("--json",)):
        assert devices("ports", *more) == 0
        out = capsys.readouterr().out
        assert "serial:/dev/ttyUSB0" in out
        assert "]0;pwn" in out
        assert out.replace("\n", "").isprintable()


def test_help_says_where_the_keys_lie(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["pair", "--help"], ["init", "--help"]):
        assert devices(*arguments) == 0
        assert "$HOLECARD_KEYS" in capsys.readouterr().out
    assert main(["devices"]) == 2
