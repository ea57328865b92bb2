"""`holecard devices`, and what its `pair` does not let people do by mistake."""

import io
import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import usb.backend.libusb1
from serial.tools import list_ports

from controller import terminal
from controller.cli import main
from drivers.keys import KeyStore, PairedDevice, keys_directory
from drivers.ports import PortRefused, discovery
from firmware_protocol.device import Describe, Plug, ServiceSwitch
from firmware_protocol.messages import DeviceClass
from firmware_protocol.tablelink import fingerprint_text
from tests.support.commands import Says
from tests.support.devices.standing import PATIENCE, TWO, WRONG, Standing, Typed, pair
from tests.support.terminal import answers, at_terminal, shows, until

AT = "2026-07-29T17:30:00Z"


def paired(serial: str) -> PairedDevice:
    return PairedDevice(
        DeviceClass.SHOE, serial, "Maker", "Shoe", bytes(range(32)), AT, ("Cid", "Dee")
    )


@pytest.fixture
def two_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyStore:
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


def test_list(two_paired: KeyStore, said: Says) -> None:
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


def test_show(two_paired: KeyStore, said: Says) -> None:
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
    two_paired: KeyStore, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    assert said(devices("forget", "SH-1")).refused("--by: is missing: two people must approve")
    assert said(devices("forget", "SH-1", "--by", "Ann", "--and", "ann")).refused(
        "--and: 'ann' is the same person"
    )
    assert said(devices("forget", "SH-9", *TWO)).refused("SH-9 is not paired; allowed: SH-1, SH-2")
    assert len(two_paired.devices()) == 2
    assert said(devices("forget", "SH-1", *TWO)).told("forgotten: shoe     SH-1 ")
    assert [one.serial for one in two_paired.devices()] == ["SH-2"]
    monkeypatch.setattr(terminal, "at_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Bo\n"))
    assert said(devices("forget", "SH-2", "--by", "Ann", "--json")).json["serial"] == "SH-2"
    assert said(devices("show", "SH-2")).refused("SH-2 is not paired; allowed: none is paired yet")
    last = json.loads((two_paired.directory / "history.jsonl").read_text().splitlines()[-1])
    assert (last["what"], last["by"]) == ("forgotten", ["Ann", "Bo"])


@pytest.mark.parametrize("command", [["list"], ["show", "SH-1"], ["forget", "SH-1", *TWO]])
def test_keys_that_cannot_be_used(two_paired: KeyStore, said: Says, command: list[str]) -> None:
    assert said(devices(*command, "--keys", str(two_paired.directory / "none"))).refused(
        "none: there is no such directory; allowed: "
    )
    file = two_paired.directory / "devices/SH-1.json"
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


@pytest.fixture
def twin(bench: Standing, tmp_path: Path) -> Iterator[Standing]:
    """Another device, which says that it is the same one, on the same bus."""
    made = Standing(tmp_path / "twin", bench.identity.serial)
    made.bus = bench.bus
    made.start()
    made.request(ServiceSwitch(True))
    yield made
    made.stop()


def key_of(device: Standing) -> str:
    return fingerprint_text(device.identity.fingerprint)


# --- fingerprints -----------------------------------------------------------------------------


def test_a_key_that_does_not_match_is_not_offered(
    bench: Standing, store: KeyStore, said: Says
) -> None:
    answer = said(pair(str(bench.port), *TWO, "--label", bench.label, "--fingerprint", "0" * 32))
    assert answer.refused(
        "--fingerprint: it does not match: the device there has another key",
        "allowed: the key on the label or in the papers of ST-7",
    )
    digits = key_of(bench)
    for shown in (digits, digits.replace("-", ""), digits[:9]):
        assert shown.lower() not in answer.err.lower()
    assert (store.devices(), bench.host) == ([], None)


def test_a_key_that_matches_is_asked_for_no_more(
    bench: Standing, store: KeyStore, typed: Typed, said: Says
) -> None:
    typed(codes=(bench.label,))
    answer = said(pair(str(bench.port), *TWO, "--fingerprint", key_of(bench)))
    assert answer.code == 0
    assert "Is this the device" not in answer.err


# --- the same number, another key ------------------------------------------------------------


def paired_before(bench: Standing, twin: Standing, said: Says) -> str:
    """The twin was paired; the bench's device is at the port now. The twin's key."""
    assert said(pair(str(twin.port), *TWO, "--label", twin.label)).code == 0
    return key_of(twin)


def test_without_replace_it_is_said_that_the_key_is_another(
    bench: Standing, twin: Standing, store: KeyStore, said: Says
) -> None:
    former = paired_before(bench, twin, said)
    assert said(pair(str(bench.port), *TWO, "--label", bench.label)).refused(
        f"by Ann Lee and Bo Chan, with another key: {former}; allowed: --replace"
    )
    assert bench.host is None


def test_with_replace_somebody_has_to_confirm_another_key(
    bench: Standing, twin: Standing, store: KeyStore, said: Says
) -> None:
    former = paired_before(bench, twin, said)
    again = [str(bench.port), *TWO, "--label", bench.label, "--replace"]
    assert said(pair(*again)).refused(
        f"its key: {key_of(bench)}\nthe key that it was paired with: {former}\n",
        "--replace: ST-7 has another key than the one that it was paired with",
        "allowed: --fingerprint with the key on its label",
    )
    assert bench.host is None
    assert store.devices()[0].fingerprint == former
    assert said(pair(*again, "--fingerprint", key_of(bench))).failed(
        0, "It has another key than the one that it was paired with"
    )
    assert store.devices()[0].fingerprint == key_of(bench)


def test_with_replace_it_is_asked_at_a_terminal(
    bench: Standing,
    twin: Standing,
    store: KeyStore,
    typed: Typed,
    said: Says,
) -> None:
    former = paired_before(bench, twin, said)
    typed("no")
    assert said(pair(str(bench.port), *TWO, "--replace")).failed(
        1,
        f"the key that it was paired with: {former}\n",
        "It has another key than the one that it was paired with, which this one replaces.\nIs",
    )
    assert store.devices()[0].fingerprint == former
    typed("yes", codes=(bench.label,))
    assert pair(str(bench.port), *TWO, "--replace") == 0
    assert store.devices()[0].fingerprint == key_of(bench)


def test_with_replace_the_same_key_needs_no_word(
    bench: Standing, store: KeyStore, said: Says
) -> None:
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 0
    assert said(pair(str(bench.port), *TWO, "--label", bench.label, "--replace")).failed(
        0, "it was paired with the same key\n"
    )


# --- two devices with one number --------------------------------------------------------------


def test_of_two_devices_none_is_taken_by_chance(
    bench: Standing, twin: Standing, store: KeyStore, said: Says
) -> None:
    head = bench.request(Describe())["head"]
    names = [f"{bench.usb} (bus 1 address {number})" for number in (1, 2)]
    assert said(pair(bench.usb, *TWO, "--label", bench.label)).mistaken(
        f"holecard: PORT: 2 devices say that they are ST-7; allowed: {names[0]!r} or {names[1]!r}; "
        "or pull the others\n"
    )
    assert bench.request(Describe())["head"] == head
    # One of them as it is listed; `ports` lists it so.
    assert said(main(["devices", "ports", "--usb", f"sim={bench.bus}"])).told(names[1])
    assert said(pair(names[1], *TWO, "--label", twin.label)).code == 0
    assert (twin.host is None, bench.host) == (False, None)
    assert said(pair(f"{bench.usb} (bus 1 address 9)", *TWO, "--label", WRONG)).refused(
        "no such device is plugged in"
    )
    # And when the other one is pulled, the number is enough.
    twin.request(Plug(connected=False))
    assert (
        pair(bench.usb, *TWO, "--label", bench.label, "--replace", "--fingerprint", key_of(bench))
        == 0
    )


@pytest.mark.parametrize("text", ["ttyUSB0 (bus 1 address 2)", "usb: (bus 1 address 2)"])
def test_a_place_makes_no_address_of_what_is_none(store: KeyStore, said: Says, text: str) -> None:
    assert said(pair(text, *TWO, "--label", WRONG)).refused("holecard: PORT: ")


def test_two_adapters_with_one_number_are_refused(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    def several(number: str) -> str:
        raise PortRefused(f"adapter:{number}: has 2 ports (/dev/ttyUSB0, /dev/ttyUSB1)")

    monkeypatch.setattr(discovery, "adapter_path", several)
    assert said(pair("adapter:A1", *TWO, "--label", WRONG)).refused(
        "PORT: adapter:A1: has 2 ports (/dev/ttyUSB0, /dev/ttyUSB1)"
    )


# --- what is empty, and what is no text -------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "--keys", ""], "--keys: is empty; allowed: a directory"),
        (["list", "--keys", ""], "--keys: is empty; allowed: a directory"),
        (["show", "ST-7", "--keys", ""], "--keys: is empty; allowed: a directory"),
        (["forget", "ST-7", *TWO, "--keys", ""], "--keys: is empty; allowed: a directory"),
        (["pair", "/dev/x", *TWO, "--label", WRONG, "--keys", ""], "--keys: is empty"),
        (["pair", "", *TWO, "--label", WRONG], "PORT: '' is no address of a port; allowed: "),
        (["ports", "--usb", ""], "--usb: is empty; allowed: NAME or NAME=ARGUMENT"),
        (["show", ""], "'': is no serial number; allowed: 1 to 20"),
        (["forget", "", *TWO], "'': is no serial number; allowed: 1 to 20"),
    ],
)
def test_what_is_empty(
    store: KeyStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
    arguments: list[str],
    words: str,
) -> None:
    (tmp_path / "here").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path / "here")
    assert said(main(["devices", *arguments])).refused(words)
    assert list((tmp_path / "here").iterdir()) == []


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, said: Says) -> None:
    def none(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("HOLECARD_KEYS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "expanduser", none)
    for command in (["init"], ["list"], ["pair", "/dev/x", *TWO, "--label", WRONG]):
        assert said(main(["devices", *command])).refused(
            "$HOLECARD_KEYS: is not set, and this user has no home"
        )


def test_no_input_at_all(store: KeyStore, monkeypatch: pytest.MonkeyPatch, said: Says) -> None:
    """As `<&-` of a shell makes it."""
    monkeypatch.setattr(sys, "stdin", None)
    assert said(pair("/dev/x", *TWO)).refused("--label: is missing")
    assert said(pair("/dev/x", *TWO, "--label", "-")).refused(
        "--label: a label code has 36 digits, not 0"
    )


def test_an_input_that_is_no_text(
    store: KeyStore, monkeypatch: pytest.MonkeyPatch, said: Says
) -> None:
    def noise() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), encoding="utf-8")

    monkeypatch.setattr(sys, "stdin", noise())
    assert said(pair("/dev/x", *TWO, "--label", "-")).refused(
        "--label: a label code has the digits 0 to 9"
    )
    monkeypatch.setattr(sys, "stdin", noise())
    monkeypatch.setattr(terminal, "at_terminal", lambda: True)
    assert said(main(["devices", "forget", "ST-7", "--by", "Ann"])).refused("ST-7 is not paired")


def test_help_of_each_command_has_examples(said: Says) -> None:
    for command in ("init", "ports", "pair", "list", "show", "forget"):
        assert said(main(["devices", command, "--help"])).told(
            f"examples:\n  holecard devices {command}"
        )
    assert said(main(["devices", "ports", "--help"])).told(
        "holecard devices ports --usb sim=run/bus\n"
    )


def test_a_bus_without_devices_is_told(tmp_path: Path, said: Says) -> None:
    assert said(main(["devices", "ports", "--usb", f"sim={tmp_path}/none"])).failed(
        0, f"no USB devices are found through sim={tmp_path}/none"
    )


# --- a real terminal --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT])
def test_whoever_is_ended_at_the_hidden_question_leaves_a_terminal_that_shows(
    bench: Standing, store: KeyStore, number: signal.Signals
) -> None:
    with at_terminal("devices", "pair", str(bench.port), *TWO, "--fingerprint", key_of(bench)) as (
        child,
        master,
    ):
        until(master, b"(not shown):")
        assert not shows(master)
        os.killpg(os.tcgetpgrp(master), number)
        assert child.wait(PATIENCE) == 128 + number
        assert shows(master)
    assert (store.devices(), bench.host) == ([], None)


def test_the_end_of_the_input_at_each_question(bench: Standing, store: KeyStore) -> None:
    for arguments, question in (
        ([*TWO], b"[yes/no] "),
        (["--fingerprint", key_of(bench)], b"Your name: "),
        (["--fingerprint", key_of(bench), "--by", "Ann"], b"second person: "),
        (["--fingerprint", key_of(bench), *TWO], b"(not shown): "),
    ):
        with at_terminal("devices", "pair", str(bench.port), *arguments) as (child, master):
            until(master, question)
            os.write(master, b"\x04")
            seen = until(master, b"not answered\r\n")
            assert seen.endswith(b"\r\nnot paired: the question was not answered\r\n")
            assert b"tries" not in seen
            assert child.wait(PATIENCE) == 1
            assert shows(master)
    assert bench.host is None


def test_the_code_from_a_terminal_is_not_shown_either_way(bench: Standing, store: KeyStore) -> None:
    arguments = ["pair", str(bench.port), *TWO, "--fingerprint", key_of(bench), "--label", "-"]
    with at_terminal("devices", *arguments) as (child, master):
        seen = answers(master, (b"(not shown):", bench.label)) + until(master, b"paired: station")
        assert child.wait(PATIENCE) == 0
        assert bench.label.encode() not in seen


def test_forgetting_that_is_given_up(bench: Standing, store: KeyStore) -> None:
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 0
    with at_terminal("devices", "forget", "ST-7") as (child, master):
        until(master, b"Your name: ")
        os.write(master, b"\x04")
        until(master, b"not forgotten: the question was not answered\r\n")
        assert child.wait(PATIENCE) == 1
    assert len(store.devices()) == 1
