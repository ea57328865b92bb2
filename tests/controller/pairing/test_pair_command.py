"""`holecard devices pair`, end to end with a simulated device behind real ports, and what it
refuses."""

import asyncio
import fcntl
import getpass
import io
import os
import pty
import sys
import threading
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from drivers.keys import KeyStore
from drivers.pairing import run_introduction
from drivers.ports import Address, PortListener, parse_placed
from firmware_protocol.device import (
    ControlRequest,
    Describe,
    InjectDefect,
    LineNoise,
    Plug,
    ServiceSwitch,
)
from firmware_protocol.host import Introduction, PairingAlert, PairingEvent, pairing
from firmware_protocol.messages import Alert, AlertCode
from firmware_protocol.tablelink import fingerprint_text
from tests.support.commands import Says
from tests.support.devices.standing import (
    PATIENCE,
    TWO,
    WRONG,
    Standing,
    Typed,
    own_fingerprint,
    pair,
    standing,
)
from tests.support.terminal import answers, at_terminal, until

HEAD_PAIRED = 3
"""Records of a device that was switched on, put into service, and paired: POWER, TAMPER, PAIRED."""


def test_pairing_over_serial(bench: Standing, store: KeyStore, said: Says) -> None:
    code, out, err = said(pair(str(bench.port), *TWO, "--label", bench.label))
    (paired,) = store.devices()
    assert (paired.key, paired.by) == (bench.identity.public, ("Ann Lee", "Bo Chan"))
    assert paired.paired_at.endswith("Z")
    assert out.startswith("paired: station  ST-7 ")
    words = f"station ST-7, Holecard Sim station\nits key: {paired.fingerprint}\n"
    assert (code, err, bench.host) == (0, words, own_fingerprint(store))


def test_pairing_over_usb_as_json(bench: Standing, store: KeyStore, said: Says) -> None:
    shown = fingerprint_text(bench.identity.fingerprint)
    code = ["--label", bench.label.replace("-", " ").lower(), "--fingerprint", shown.lower()]
    assert said(pair(bench.usb, *TWO, *code, "--json")).json == {
        "class": "station",
        "serial": "ST-7",
        "maker": "Holecard",
        "model": "Sim station",
        "fingerprint": shown,
        "paired_at": store.devices()[0].paired_at,
        "by": ["Ann Lee", "Bo Chan"],
    }


def test_the_code_from_standard_input(
    bench: Standing, store: KeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{bench.label}\n"))
    assert pair(str(bench.port), *TWO, "--label", "-") == 0
    assert len(store.devices()) == 1


def test_at_a_terminal_everything_is_asked_for(
    bench: Standing, store: KeyStore, typed: Typed, said: Says
) -> None:
    slip = ("0" if bench.label[0] != "0" else "1") + bench.label[1:]
    typed("yes", "Ann", "Bo", codes=(slip, bench.label[:-2], bench.label))
    answer = said(pair(str(bench.port)))
    assert answer.failed(
        0, "a digit was mistyped; try again", "36 digits, not 34; try again", "Is this the device"
    )
    assert store.devices()[0].by == ("Ann", "Bo")
    assert bench.label not in answer.err
    # A slip is noticed by the check digits: the device never heard of it.
    assert bench.request(Describe())["head"] == HEAD_PAIRED


def test_a_key_that_people_do_not_confirm(
    bench: Standing, store: KeyStore, typed: Typed, said: Says
) -> None:
    for answer in ("no", "", "yes please"):
        typed(answer)
        assert said(pair(str(bench.port))).failed(1, "not paired: the key was not confirmed\n")
    typed()
    assert said(pair(str(bench.port))).failed(1, "\nnot paired: the question was not answered\n")
    assert bench.host is None


def test_a_code_that_is_mistyped_three_times(
    bench: Standing, store: KeyStore, typed: Typed, said: Says
) -> None:
    typed("yes", "Ann", "Bo", codes=("1", "2", "3"))
    assert said(pair(str(bench.port))).refused(
        "label: no code in 3 tries; the device has not been asked"
    )
    assert store.devices() == []


# --- the answer is no -------------------------------------------------------------------------


def test_a_wrong_code(
    bench: Standing,
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pairing, "PAIR_WAIT_MS", 1000)
        assert said(pair(str(bench.port), *TWO, "--label", WRONG)).failed(
            1,
            "not paired: ST-7: it did not agree: most likely the label code",
            "it hints: the label code is not its own",
        )
    assert store.devices() == []
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (ServiceSwitch(False), ["not paired: the service switch of ST-7 is off\n"]),
        (LineNoise(flip=1.0), ["nothing answered"]),
        (InjectDefect("memory"), ["nothing answered", "it hints: it cannot work"]),
    ],
    ids=["service switch off", "a line that garbles everything", "no memory"],
)
def test_a_device_that_cannot_be_paired_now(
    bench: Standing,
    store: KeyStore,
    hasty: None,
    said: Says,
    fault: ControlRequest,
    words: list[str],
) -> None:
    bench.request(fault)
    assert said(pair(str(bench.port), *TWO, "--label", bench.label)).failed(1, *words)


AtCode = Callable[[Callable[[], object]], None]


@pytest.fixture
def at_code(bench: Standing, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> AtCode:
    """Somebody answers all the questions, and this happens before the code is typed."""

    def sit(happens: Callable[[], object]) -> None:
        def type_code(prompt: str) -> str:
            happens()
            return bench.label

        typed("yes", "Ann", "Bo")
        monkeypatch.setattr(getpass, "getpass", type_code)

    return sit


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (
            ServiceSwitch(False),
            (
                1,
                "not paired: ST-7: it does not take part: its service switch is off, or it has",
                "it hints: its service switch is off",
            ),
        ),
        (Plug(False), (2, "there is no such port")),
    ],
    ids=["service switch off", "cable pulled"],
)
def test_a_device_that_stops_taking_part(
    bench: Standing,
    store: KeyStore,
    at_code: AtCode,
    hasty: None,
    said: Says,
    fault: ControlRequest,
    expected: tuple[int, *tuple[str, ...]],
) -> None:
    at_code(lambda: bench.request(fault))
    assert said(pair(str(bench.port))).failed(*expected)
    assert store.devices() == []


def test_nobody_answers(store: KeyStore, hasty: None, said: Says) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    answer = said(pair(os.ttyname(slave), *TWO, "--label", WRONG))
    os.close(master)
    os.close(slave)
    assert answer.failed(1, "nothing answered: no device, one without power")


def test_a_port_that_goes_in_the_middle(store: KeyStore, said: Says) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    path = os.ttyname(slave)

    def pull() -> None:
        os.read(master, 1)  # HELLO is on its way
        os.close(slave)
        os.close(master)

    puller = threading.Thread(target=pull)
    puller.start()
    answer = said(pair(path, *TWO, "--label", WRONG))
    puller.join(PATIENCE)
    words = f"not paired: {path}: the port has gone: it was unplugged or hung up\n"
    assert answer == (1, "", words)


def test_the_device_is_another_one_when_the_code_is_typed(
    bench: Standing,
    store: KeyStore,
    at_code: AtCode,
    tmp_path: Path,
    said: Says,
) -> None:
    (tmp_path / "other").mkdir()
    with standing(tmp_path / "other", "ST-8") as other:

        def swap() -> None:
            bench.request(Plug(False))
            bench.port.symlink_to(other.port.resolve())

        at_code(swap)
        assert said(pair(str(bench.port))).failed(1, "(wrong-device: expected ST-7, found ST-8)")
        bench.port.unlink()
    assert store.devices() == []


# --- a real terminal --------------------------------------------------------------------------


def test_a_real_terminal(bench: Standing, store: KeyStore) -> None:
    with at_terminal("devices", "pair", str(bench.port)) as (child, master):
        seen = answers(
            master,
            (b"the right one?", "yes"),
            (b"Your name:", "Ann"),
            (b"second person:", "Bo"),
            (b"(not shown):", bench.label),
        )
        seen += until(master, b"paired: station")
        assert child.wait(PATIENCE) == 0
    assert bench.label.encode() not in seen
    assert len(store.devices()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "Ann", "--and", "Bo"], "--label: is missing; allowed: CODE, or - to read"),
        (["--label", WRONG, "--and", "Bo"], "--by: is missing: two people must approve; allowed: "),
        (
            ["--label", WRONG, "--by", "Ann"],
            "--and: is missing: two people must approve; allowed: ",
        ),
        (
            ["--label", WRONG, "--by", "Ann", "--and", " ANN "],
            "--and: 'ANN' is the same person; allowed: a different person",
        ),
        (["--label", WRONG, "--by", "A  b", "--and", "\uff21 B"], "is the same person"),
        (["--label", WRONG, "--by", " ", "--and", "Bo"], "--by: ' ' is no name; allowed: 1 to 64"),
        (["--label", WRONG, "--by", "", "--and", "Bo"], "--by: '' is no name; allowed: 1 to 64"),
        (["--label", WRONG, "--by", "A", "--and", "x" * 65], "is no name"),
        (["--label", WRONG, "--by", "A\x1b[1m", "--and", "B"], "'A\\x1b[1m' is no name"),
        ([*TWO, "--label", "12"], "--label: a label code has 36 digits, not 2; allowed: the 36"),
        ([*TWO, "--label", ""], "--label: a label code has 36 digits, not 0"),
        ([*TWO, "--label", "-"], "--label: a label code has 36 digits, not 0"),
        ([*TWO, "--label", "z" * 36], "--label: a label code has the digits 0 to 9"),
        ([*TWO, "--label", WRONG, "--fingerprint", "12"], "--fingerprint: '12' is none; allowed: "),
    ],
)
def test_arguments_are_looked_at_before_the_port_is(
    store: KeyStore, said: Says, arguments: list[str], words: str
) -> None:
    assert said(pair("/dev/no-such-port", *arguments)).mistaken(words)


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ("/dev/no-such-port", "PORT: /dev/no-such-port: there is no such port"),
        ("ttyUSB0", "PORT: 'ttyUSB0' is no address of a port; allowed: serial:PATH or"),
        ("/dev/null", "PORT: /dev/null: it is no serial port"),
        ("adapter:NONE", "PORT: adapter:NONE: no such adapter is plugged in"),
        ("usb+none:SH-1", "PORT: there is no USB backend none; installed: libusb1, sim"),
    ],
)
def test_ports_that_cannot_be(store: KeyStore, said: Says, port: str, words: str) -> None:
    assert said(pair(port, *TWO, "--label", WRONG)).refused(words)


def test_a_port_that_is_busy(bench: Standing, store: KeyStore, said: Says) -> None:
    holder = os.open(bench.port, os.O_RDWR | os.O_NOCTTY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    answer = said(pair(str(bench.port), *TWO, "--label", bench.label))
    os.close(holder)
    assert answer.refused("it is in use by another program")


def test_a_pairing_is_replaced_only_with_replace(
    bench: Standing, store: KeyStore, said: Says
) -> None:
    assert said(pair(str(bench.port), *TWO, "--label", bench.label)).code == 0
    again = ["--by", "Cid", "--and", "Dee", "--label", bench.label]
    assert said(pair(str(bench.port), *again)).refused(
        "by Ann Lee and Bo Chan; allowed: --replace, to pair it again"
    )
    assert pair(str(bench.port), *again, "--replace") == 0
    assert store.devices()[0].by == ("Cid", "Dee")


def test_a_device_of_another_host_says_so(
    bench: Standing, store: KeyStore, tmp_path: Path, said: Says
) -> None:
    KeyStore.create(tmp_path / "other")
    keys = ["--keys", str(tmp_path / "other")]
    assert pair(str(bench.port), *TWO, "--label", bench.label, *keys) == 0
    assert said(pair(str(bench.port), *TWO, "--label", bench.label)).failed(
        0, "it is paired with another host, which will lose it"
    )


def test_keys_that_cannot_be_used(
    bench: Standing, store: KeyStore, tmp_path: Path, said: Says
) -> None:
    arguments = [str(bench.port), *TWO, "--label", bench.label]
    assert said(pair(*arguments, "--keys", str(tmp_path / "none"))).refused(
        "there is no such directory; allowed: `holecard devices init`"
    )
    store.directory.chmod(0o755)
    assert said(pair(*arguments)).refused(f"mode 700: chmod 700 {store.directory}")
    assert bench.host is None


def test_a_full_disk_is_noticed_before_the_device_is_paired(
    bench: Standing,
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        answer = said(pair(str(bench.port), *TWO, "--label", bench.label))
    assert answer.failed(2, "cannot be written: no space left on device")
    assert "now knows this host" not in answer.err
    assert bench.host is None


def test_a_key_that_cannot_be_kept_after_all(
    bench: Standing,
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    said: Says,
) -> None:
    add = KeyStore.add

    def fill(self: KeyStore, *arguments: object, **options: object) -> None:
        def full(descriptor: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            add(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(KeyStore, "add", fill)
    assert said(pair(str(bench.port), *TWO, "--label", bench.label)).refused(
        "no space left on device; ST-7 now knows this host: pair it again"
    )


class _Hinting(Introduction):
    """A conversation in which the device sends hints without end."""

    def receive(self, data: bytes, now: int) -> list[PairingEvent]:
        if not data:
            return self.close()
        return [PairingAlert(Alert(AlertCode(data[0]), 0))] * 1000


class _SilentPort:
    def write(self, data: bytes) -> None:
        pass

    async def close(self) -> None:
        pass


def test_hints_without_end_are_kept_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone on the cable can send them."""

    async def open_port(address: Address, listener: PortListener) -> _SilentPort:
        def speak() -> None:
            for code in (AlertCode.PAIRING_OFF, AlertCode.DEFECT, AlertCode.PAIRING_OFF):
                listener.received(bytes([code]))
            listener.received(b"")

        asyncio.get_running_loop().call_soon(speak)
        return _SilentPort()

    monkeypatch.setattr("drivers.pairing.open_port", open_port)
    talk = _Hinting(bytes(16), tries=1)
    outcome = asyncio.run(run_introduction(parse_placed("serial:/dev/none"), talk))
    assert outcome.hints == (AlertCode.PAIRING_OFF, AlertCode.DEFECT)
