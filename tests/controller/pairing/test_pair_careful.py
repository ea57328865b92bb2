"""What `holecard devices pair` does not let people do by mistake."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import terminal
from controller.cli import main
from drivers.keys import KeyStore
from drivers.ports import PortRefused, discovery
from firmware_protocol.device import Describe, Plug, ServiceSwitch
from firmware_protocol.tablelink import fingerprint_text
from tests.support.commands import Says
from tests.support.devices.standing import PATIENCE, TWO, WRONG, Standing, Typed, pair
from tests.support.terminal import answers, at_terminal, shows, until


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
