"""Any bytes, into all that decodes: nothing raises, and nothing grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_protocol.host import ProtocolViolated
from firmware_protocol.tablelink import EventRecord, encode_plaintext
from tests.long.fuzz import decoders
from tests.long.fuzz.decoders import TARGETS
from tests.long.fuzz.scripted import EPOCH, Scripted, Wired
from tests.support.firmware_protocol.strategies import any_plaintext

ZEROS = st.sampled_from((b"", b"\0", b"\0\0\1\0", b"\xff" * 300))
BYTES = st.lists(st.binary(max_size=300) | ZEROS, max_size=8).map(b"".join)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    @settings(max_examples=150)
    @given(BYTES)
    def feed(data: bytes) -> None:
        TARGETS[name](data)

    feed()


@settings(max_examples=150)
@given(st.lists(any_plaintext(), min_size=1, max_size=12), st.booleans())
def test_any_message_under_the_sessions_keys(whats: list[object], ours: bool) -> None:
    """Well-formed or of the wrong side, class or ring: the link lives, and says what is wrong."""
    wired = Wired.running(2)
    for what in whats:
        data = encode_plaintext(what)  # type: ignore[arg-type]
        if ours and isinstance(what, EventRecord):
            data = data[:2] + EPOCH.to_bytes(4, "little") + data[6:]
        told = wired.say(data)
        assert all(type(one.error).__module__ for one in told if isinstance(one, ProtocolViolated))
    wired.pass_ms(300)
    assert wired.link.running


# --- nothing of it is on the line -----------------------------------------------------------


def test_no_plaintext_is_on_the_wire() -> None:
    wired = Wired(Scripted(6))
    crossed = bytearray()
    taken = wired.device.take

    def tapped() -> bytes:
        out = taken()
        crossed.extend(out)
        return out

    wired.device.take = tapped  # type: ignore[method-assign]
    wired.open()
    wired.adopt()
    wired.send(1, 2, 3, 4, 5, 6)
    assert len(wired.arrived) == 6
    for record in wired.device.records:
        raw = record.encode()
        assert not [
            at for at in range(0, 49, 8) if any(raw[at : at + 8]) and raw[at : at + 8] in crossed
        ]


# --- the fuzzer's own way in ----------------------------------------------------------------


def test_without_atheris_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "atheris", None)
    assert decoders.main(["--target", "link"]) == 2
    assert "atheris is not installed" in capsys.readouterr().err


def test_its_targets_are_named_and_its_arguments_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert decoders.main(["--list"]) == 0
    assert set(TARGETS) <= set(capsys.readouterr().out.split())
    for wrong in (["--target", "none"], ["--runs", "0"], ["--seconds", "-1"]):
        with pytest.raises(SystemExit) as stop:
            decoders.main(wrong)
        assert stop.value.code == 2


def test_what_the_fuzzer_finds_is_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = iter((0, 77))

    def run(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        assert command[1:4] == ["-m", "tests.long.fuzz.decoders", "--inside"]
        return subprocess.CompletedProcess(command, next(codes))

    monkeypatch.setitem(sys.modules, "atheris", pytest)
    monkeypatch.setattr(subprocess, "run", run)
    arguments = ["--target", "cobs", "--runs", "5", "--findings", str(tmp_path / "found")]
    assert decoders.main(arguments) == 0
    assert decoders.main(arguments) == 1
    assert "found something: cobs" in capsys.readouterr().out
