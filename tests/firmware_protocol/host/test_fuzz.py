"""Any bytes, into all that decodes: nothing raises, and nothing grows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_protocol.host import ProtocolViolated
from firmware_protocol.tablelink import EventRecord, encode_plaintext
from tests.long.fuzz import decoders, link
from tests.long.fuzz.decoders import TARGETS
from tests.long.fuzz.link import MOMENTS, Failed, play
from tests.long.fuzz.sabotage import SABOTAGED
from tests.long.fuzz.scripted import EPOCH, Scripted, Wired
from tests.support.firmware_protocol.line import Faults, Line
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


CHUNKS, EACH, LENGTH = 8, 125, 24


@pytest.mark.parametrize("number", range(CHUNKS))
def test_histories(number: int, record_property: Callable[[str, object], None]) -> None:
    tally = link.chunk((number * EACH, EACH, LENGTH))
    for name in ("histories", "steps", "records"):
        record_property(f"link {name}", getattr(tally, name))
    assert tally.histories == EACH
    # They are worth something only if a lot happens in them.
    assert tally.records > 15 * EACH
    assert tally.counts["sessions"] > EACH
    assert tally.counts["new keys"] > EACH // 4
    faults = ("loss", "flip", "double", "splice", "cut", "reorder", "noise")
    for happened in (*faults, "host killed", "port lost", "power lost", "frozen", "stalled"):
        assert tally.counts[happened] > EACH // 10, happened
    for moment in MOMENTS:
        assert tally.counts[f"cut {moment}"] > EACH // 50, moment


@pytest.mark.parametrize("name", SABOTAGED)
def test_a_link_that_breaks_a_rule_is_found_out(name: str) -> None:
    for seed in range(200):
        try:
            play(seed, LENGTH, kind=SABOTAGED[name], tampered=_TAMPERED.get(name))
        except Failed:
            return
    pytest.fail(f"200 histories have not found out {name}")


_TAMPERED = {"ignores-chain": True, "trusts-the-device": True}
"""What shows only when someone was at the ring."""


def test_a_history_is_played_again_from_its_seed() -> None:
    for seed in (3, 12):
        assert play(seed, LENGTH) == play(seed, LENGTH)


def test_a_failure_says_how_to_play_it_again() -> None:
    with pytest.raises(Failed, match=r"tests\.long\.fuzz\.link --history 1 --length 30$"):
        play(1, 30, kind=SABOTAGED["keeps-one"])


def test_the_campaign_counts_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert link.main(["--steps", "60", "--length", "20", "--seed", "7"]) == 0
    assert "3 histories, 60 steps" in capsys.readouterr().out
    assert link.main(["--history", "7", "--length", "20"]) == 0

    def fails(seed: int, steps: int) -> None:
        raise Failed(f"history {seed} of {steps} steps")

    monkeypatch.setattr(link, "play", fails)
    assert link.main(["--steps", "40", "--length", "20"]) == 1
    assert "FAILED: history 0 of 20 steps" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        link.main(["--steps", "none"])
    assert stop.value.code == 2


# --- the line itself ------------------------------------------------------------------------

FRAMES = [bytes((number,)) * 40 + b"\0" for number in range(1, 201)]


def through(faults: Faults, now: int = 0) -> list[bytes]:
    line = Line(Random(1), faults=faults)
    out = []
    for frame in FRAMES:
        line.put(frame, now)
    while (due := line.due()) is not None:
        out.append(line.take(due))
    return out


@pytest.mark.parametrize("kind", ["loss", "double", "flip", "cut", "splice", "noise", "reorder"])
def test_each_fault_strikes_its_share(kind: str) -> None:
    line = Line(Random(1), faults=Faults(**{kind: 0.25}))  # type: ignore[arg-type]
    for frame in FRAMES:
        line.put(frame, 0)
    assert 30 < line.struck[kind] < 75
    assert b"".join(through(line.faults)) != b"".join(FRAMES)
