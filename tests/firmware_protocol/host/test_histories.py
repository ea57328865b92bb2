"""Random histories of a link, a faulty line and a simulated shoe in simulated time: each committed
record arrives exactly once and in order, and a link that breaks a rule is detected."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.long.fuzz import link
from tests.long.fuzz.link import MOMENTS, Failed, play
from tests.long.fuzz.sabotage import SABOTAGED
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


@pytest.mark.parametrize("kind", ["loss", "double", "flip", "cut", "splice", "noise", "reorder"])
def test_each_fault_strikes_its_share(kind: str) -> None:
    line = Line(Random(1))
    line.faults = Faults(**{kind: 0.25})  # type: ignore[arg-type]
    for frame in FRAMES:
        line.put(frame, 0)
    assert 30 < line.struck[kind] < 75
    assert b"".join(through(line.faults)) != b"".join(FRAMES)
