"""Pulls that were asked for and not made: a shoe tells how many, and what ended them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device.control import Describe, Draw, Load, MoveCover, SetJam
from firmware_protocol.messages import DEAD_MS, CardRead
from hil.devices import SimulatedShoe
from hil.devices.shoe import GAP_MS
from tests.support.hil.devices.desk import Scene
from tests.support.hil.devices.meeting import Meeting
from tests.support.hil.devices.shoe_table import ONE_MS, OPEN, SHUT, draw, table

ENDS: dict[str, Callable[[Scene], object]] = {
    "lock": lambda scene: scene.call(SHUT),
    "safe state": lambda scene: scene.mechanism.safe(scene.now),
    "cover": lambda scene: scene.do(MoveCover(open=True)),
    "jam": lambda scene: scene.do(SetJam("stuck")),
}


def undrawn(scene: Scene) -> tuple[int, str | None]:
    told = scene.look()
    return told["undrawn"], told["undrawn_why"]


@pytest.mark.parametrize("why", ENDS)
def test_cancelled_pulls_are_counted_with_their_cause(why: str) -> None:
    scene = table()
    assert undrawn(scene) == (0, None)
    draw(scene, count=2)
    assert undrawn(scene) == (0, None)
    scene.run(ms=GAP_MS)
    scene.do(Draw(count=5))
    scene.run(ms=ONE_MS + GAP_MS + 1)  # the second card is over the reader, and comes out
    ENDS[why](scene)
    assert scene.look()["queued"] == 0
    assert undrawn(scene) == (3, why)
    ENDS[why](scene)
    assert undrawn(scene) == (3, why)
    scene.restart()
    assert undrawn(scene) == (0, None)


def test_forced_pulls_are_not_cancelled() -> None:
    scene = table()
    scene.do(Draw(count=3))
    scene.do(Draw(count=4, force=True))
    scene.mechanism.safe(scene.now)
    assert (scene.look()["queued"], undrawn(scene)) == (4, (2, "safe state"))
    scene.run()
    assert len(scene.those(CardRead)) == 5
    assert undrawn(scene) == (2, "safe state")


def test_a_full_ring_ends_them_too() -> None:
    scene = table()
    scene.desk.room = 2
    draw(scene, count=6)
    assert len(scene.those(CardRead)) == 2
    assert undrawn(scene) == (4, "safe state")


@given(
    count=st.integers(1, 12),
    more=st.integers(0, 5),
    double=st.booleans(),
    ms=st.integers(0, 1200),
    why=st.sampled_from(sorted(ENDS)),
)
def test_every_pull_is_made_or_counted(
    count: int, more: int, double: bool, ms: int, why: str
) -> None:
    scene = table()
    asked = scene.do(Draw(count=count, double=double))["queued"]
    if more:
        asked += scene.do(Draw(count=more, double=double))["queued"]
    scene.run(ms=ms)
    ENDS[why](scene)
    scene.do(SetJam(None))
    scene.run()
    cards = len(scene.look()["out"])
    assert asked == cards // (2 if double else 1) + undrawn(scene)[0]


def test_a_host_that_dies(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, SimulatedShoe)
    meeting.open()
    meeting.run(500)
    meeting.request(Load(decks=6, seed=1))
    meeting.link.call(OPEN, meeting.now)
    meeting.run(100)
    told = meeting.request(Draw(count=100))
    assert told["queued"] == 100
    before = meeting.request(Describe())["mechanism"]
    assert (before["lock"], before["undrawn"]) == ("open", 0)
    end = meeting.now + (DEAD_MS + 1000) * 1000
    while meeting.now < end:  # nobody is at the other end of the cable
        due = meeting.stand.due()
        meeting.now = end if due is None else min(end, max(due, meeting.now))
        meeting.stand.wake(meeting.now)
        meeting.stand.take()
    after = meeting.stand.request(Describe(), meeting.now)["mechanism"]
    assert (after["lock"], after["queued"], after["undrawn_why"]) == ("locked", 0, "safe state")
    assert 0 < len(after["out"]) < 100
    assert after["undrawn"] == 100 - len(after["out"])
