"""Link, faulty line and simulated shoe in simulated time: what is committed arrives exactly once
and in order, whatever happens in between; and a link that breaks a rule is found out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from firmware_protocol.device.control import CoverHand, Draw
from firmware_protocol.messages.common import Info, Selftest
from firmware_protocol.messages.enums import LockState
from firmware_protocol.messages.limits import REKEY_FRAMES
from firmware_protocol.messages.shoe import Lock
from tests.long.fuzz import link
from tests.long.fuzz.history import MEMORY, MOMENTS, Failed, play
from tests.long.fuzz.powered import Terms
from tests.long.fuzz.sabotage import SABOTAGED
from tests.long.fuzz.world import World
from tests.support.firmware_protocol.line import Faults, Line

CHUNKS, EACH, LENGTH = 8, 250, 24


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
    for happened in ("loss", "flip", "double", "splice", "cut", "reorder", "noise"):
        assert tally.counts[happened] > EACH // 10, happened
    for happened in ("host killed", "port lost", "power lost", "frozen", "stalled"):
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


# --- the same, shrinkable -------------------------------------------------------------------

SHARES = st.sampled_from((0.0, 0.0, 0.1, 0.4, 1.0))
FAULTS = st.builds(
    Faults,
    loss=SHARES,
    double=SHARES,
    flip=SHARES,
    cut=SHARES,
    splice=SHARES,
    noise=SHARES,
    reorder=SHARES,
    delay_us=st.sampled_from((0, 1_000, 40_000)),
    byte_us=st.sampled_from((0, 87)),
)


class Table(RuleBasedStateMachine):
    """One world, and everything that can happen in it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="table-", dir=MEMORY)

    @initialize(seed=st.integers(0, 1 << 32), frames=st.sampled_from((REKEY_FRAMES, 30)))
    def begin(self, seed: int, frames: int) -> None:
        folder = Path(self._folder.name) / "device"
        self.world = World(folder, Random(seed), Terms(rekey_frames=frames))

    @rule(ms=st.sampled_from((1, 10, 50, 200, 1100, 4000)))
    def wait(self, ms: int) -> None:
        self.world.run(ms * 1000)

    @rule(count=st.integers(1, 10))
    def draw(self, count: int) -> None:
        self.world.hand(Draw(count=count, dwell_ms=1, force=True))

    @rule(opened=st.booleans())
    def cover(self, opened: bool) -> None:
        self.world.hand(CoverHand(opened))

    @rule(to_device=FAULTS, to_host=FAULTS)
    def faults(self, to_device: Faults, to_host: Faults) -> None:
        self.world.set_faults(to_device, to_host)

    @rule(after_disk=st.booleans())
    def kill(self, after_disk: bool) -> None:
        if after_disk:
            self.world.disk.write()
        self.world.kill_host()

    @rule()
    def kill_hearing(self) -> None:
        self.world.dies_hearing = True

    @rule(at_once=st.booleans())
    def disk(self, at_once: bool) -> None:
        self.world.keeps_at_once = at_once

    @rule(count=st.integers(1, 8), told=st.booleans())
    def write(self, count: int, told: bool) -> None:
        self.world.disk.write(count)
        if told:
            self.world.tell_kept()

    @rule()
    def open(self) -> None:
        self.world.open_port()

    @rule(unplugged=st.booleans())
    def lose(self, unplugged: bool) -> None:
        self.world.lose_port(unplugged=unplugged)

    @rule(ms=st.integers(0, 2000))
    def power(self, ms: int) -> None:
        self.world.power_off(ms * 1000)

    @rule(moment=st.sampled_from(MOMENTS))
    def cut(self, moment: str) -> None:
        self.world.cut_power_at(next(one for one in MOMENTS if one == moment))

    @rule(window=st.booleans())
    def window(self, window: bool) -> None:
        (self.world.go_on if window else self.world.pause)()

    @rule(command=st.sampled_from((Lock(LockState.OPEN), Info(), Selftest())))
    def call(self, command: Lock | Info | Selftest) -> None:
        self.world.call(command)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        try:
            if hasattr(self, "world"):
                self.world.settle()
        finally:
            self._folder.cleanup()


Table.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
TestTable = Table.TestCase


# --- the line itself ------------------------------------------------------------------------

FRAMES = [bytes((number,)) * 40 + b"\0" for number in range(1, 201)]


def through(faults: Faults, now: int = 0) -> list[bytes]:
    line = Line(Random(1))
    line.faults = faults
    out = []
    for frame in FRAMES:
        line.put(frame, now)
    while (due := line.due()) is not None:
        out.append(line.take(due))
    return out


def test_a_clean_line_changes_nothing() -> None:
    assert b"".join(through(Faults())) == b"".join(FRAMES)
    slow = Line(Random(1))
    slow.faults = Faults(byte_us=87, delay_us=1000)
    slow.put(FRAMES[0] + FRAMES[1], 0)
    assert slow.due() == 1000 + 41 * 87
    assert slow.take(1000 + 41 * 87) == FRAMES[0]
    slow.clear()
    assert slow.due() is None


@pytest.mark.parametrize("kind", ["loss", "double", "flip", "cut", "splice", "noise", "reorder"])
def test_each_fault_strikes_its_share(kind: str) -> None:
    line = Line(Random(1))
    line.faults = Faults(**{kind: 0.25})  # type: ignore[arg-type]
    for frame in FRAMES:
        line.put(frame, 0)
    assert 30 < line.struck[kind] < 75
    assert b"".join(through(line.faults)) != b"".join(FRAMES)
