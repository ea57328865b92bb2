"""What `holecard devices pair` refuses before it pairs anything."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from drivers import pairing
from drivers.keys import KeyStore
from drivers.pairing import run_introduction
from drivers.ports import Address, PortListener, parse_placed
from firmware_protocol.host import Introduction, PairingAlert, PairingEvent
from firmware_protocol.messages import Alert, AlertCode
from tests.support.devices.standing import TWO, WRONG, Standing, pair


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
    store: KeyStore, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert pair("/dev/no-such-port", *arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


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
def test_ports_that_cannot_be(
    store: KeyStore, capsys: pytest.CaptureFixture[str], port: str, words: str
) -> None:
    assert pair(port, *TWO, "--label", WRONG) == 2
    assert words in capsys.readouterr().err


def test_a_port_that_is_busy(
    bench: Standing, store: KeyStore, capsys: pytest.CaptureFixture[str]
) -> None:
    holder = os.open(bench.port, os.O_RDWR | os.O_NOCTTY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 2
    os.close(holder)
    assert "it is in use by another program" in capsys.readouterr().err


def test_a_pairing_is_replaced_only_with_replace(
    bench: Standing, store: KeyStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 0
    again = ["--by", "Cid", "--and", "Dee", "--label", bench.label]
    assert pair(str(bench.port), *again) == 2
    assert "by Ann Lee and Bo Chan; allowed: --replace, to pair it again" in capsys.readouterr().err
    assert pair(str(bench.port), *again, "--replace") == 0
    assert store.devices()[0].by == ("Cid", "Dee")


def test_a_device_of_another_host_says_so(
    bench: Standing, store: KeyStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    KeyStore.create(tmp_path / "other")
    keys = ["--keys", str(tmp_path / "other")]
    assert pair(str(bench.port), *TWO, "--label", bench.label, *keys) == 0
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 0
    assert "it is paired with another host, which will lose it" in capsys.readouterr().err


def test_keys_that_cannot_be_used(
    bench: Standing, store: KeyStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(bench.port), *TWO, "--label", bench.label]
    assert pair(*arguments, "--keys", str(tmp_path / "none")) == 2
    assert "there is no such directory; allowed: `holecard devices init`" in capsys.readouterr().err
    store.directory.chmod(0o755)
    assert pair(*arguments) == 2
    assert f"mode 700: chmod 700 {store.directory}" in capsys.readouterr().err
    assert bench.host is None


def test_a_full_disk_is_noticed_before_the_device_is_paired(
    bench: Standing,
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert pair(str(bench.port), *TWO, "--label", bench.label) == 2
    err = capsys.readouterr().err
    assert "cannot be written: no space left on device" in err
    assert "now knows this host" not in err
    assert bench.host is None


def test_a_key_that_cannot_be_kept_after_all(
    bench: Standing,
    store: KeyStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add = KeyStore.add

    def fill(self: KeyStore, *arguments: object, **options: object) -> None:
        def full(descriptor: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            add(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(KeyStore, "add", fill)
    assert pair(str(bench.port), *TWO, "--label", bench.label) == 2
    err = capsys.readouterr().err
    assert "no space left on device; ST-7 now knows this host: pair it again" in err


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

    monkeypatch.setattr(pairing, "open_port", open_port)
    talk = _Hinting(bytes(16), tries=1)
    outcome = asyncio.run(run_introduction(parse_placed("serial:/dev/none"), talk))
    assert outcome.hints == (AlertCode.PAIRING_OFF, AlertCode.DEFECT)
