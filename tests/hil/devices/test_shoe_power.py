"""A simulated shoe whose ring is full or whose power goes: every card is told once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import control
from firmware_protocol.device.control import Draw, Load, MoveCover, Retract, SetJam
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    CardRetracted,
    Cover,
    CutCard,
    DeviceState,
    Loaded,
    ReadFail,
)
from hil.devices import SimulatedShoe, card_names
from hil.devices.pending_events import MAX_PENDING
from tests.support.hil.devices.desk import PowerGone, Scene, act
from tests.support.hil.devices.shoe_table import OPEN, SHUT, cannot, draw, names, table

# --- gate, full ring, power -----------------------------------------------------------------


def test_the_gate_holds_a_card_while_the_ring_is_full() -> None:
    scene = table()
    scene.desk.room = 0
    scene.mechanism.safe(scene.now)
    assert scene.do(Draw(count=2, force=True))["queued"] == 2
    scene.run(ms=5000)
    assert scene.look()["held"] == ["Ac"]
    assert scene.look()["out"] == []
    assert not scene.those(CardRead)
    cannot(scene, Draw(force=True), "until the ring has space")
    cannot(scene, Retract(), "cards are being drawn")
    scene.desk.room = 9
    scene.run()
    assert scene.look()["out"] == ["Ac", "2c"]
    assert names(scene.events) == ["Ac", "2c"]


def test_without_a_gate_the_card_is_out_and_its_record_follows() -> None:
    scene = table(make=lambda: SimulatedShoe(gate=False))
    scene.desk.room = 0
    scene.do(Draw(count=2, force=True))
    scene.run(ms=5000)
    assert scene.look()["out"] == ["Ac"]
    assert not scene.those(CardRead)
    scene.desk.room = 9
    scene.run()
    assert names(scene.events) == ["Ac", "2c"]


def test_events_at_a_full_ring_are_recorded_later_up_to_a_limit() -> None:
    scene = table()
    scene.desk.room = 0
    for number in range(MAX_PENDING):
        scene.do(MoveCover(open=number % 2 == 0))
    cannot(scene, MoveCover(open=True), "no further event can be stored")
    cannot(scene, SetJam("stuck"), "no further event can be stored")
    cannot(scene, Load(decks=1), "until the ring has space")
    scene.desk.room = 1000
    scene.run()
    assert scene.those(Cover)[2:] == [Cover(True), Cover(False)] * (MAX_PENDING // 2)
    assert scene.mechanism.due() is None


# --- restarts -------------------------------------------------------------------------------


def test_the_contents_of_a_shoe_survive_a_restart() -> None:
    scene = table(load=Load(decks=1, cards=("Ac", "2c", "Ac", "3c", "4c")))
    draw(scene, count=2)
    scene.do(Draw(count=3))
    scene.run(ms=10)
    before = len(scene.events)
    scene.restart()
    assert scene.mechanism.due() is None
    assert len(scene.events) == before
    assert scene.look()["cards"] == ["Ac", "3c", "4c"]
    assert scene.look()["out"] == ["Ac", "2c"]
    scene.do(Retract())
    scene.call(OPEN)
    draw(scene, count=2)
    last = scene.those(CardRead)[-2:]
    assert names(list(last)) == ["2c", "Ac"]
    assert [(read.shoe, read.pos, read.flags) for read in last] == [
        (1, 2, 0),
        (1, 3, CardFlags.DUPLICATE),
    ]


@pytest.mark.parametrize("hand", [MoveCover(open=True), SetJam("stuck")])
def test_cover_door_and_jam_survive_a_restart(hand: control.ControlRequest) -> None:
    scene = table()
    scene.do(hand)
    state = scene.mechanism.state()
    scene.restart()
    assert scene.mechanism.state() == state | DeviceState.LOCKED


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("after", [0, 1])
def test_every_card_is_reported_once_after_a_power_cut(
    moment: control.Moment, double: bool, after: int
) -> None:
    scene = table()
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    scene.do(Draw(count=4, double=double))
    with pytest.raises(PowerGone):
        scene.run()
    scene.restart()
    scene.run()
    assert len(scene.look()["out"]) == len(scene.those(CardRead)) + len(scene.those(ReadFail))
    scene.call(OPEN)
    draw(scene, count=2)
    told = [event.pos for event in scene.events if isinstance(event, CardRead | ReadFail)]
    assert told == list(range(1, len(scene.look()["out"]) + 1))
    assert scene.look()["out"] == list(card_names.NAMES[: len(told)])
    assert scene.look()["held"] == []


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("after", range(3))
def test_every_loading_is_reported_once_after_a_power_cut(
    moment: control.Moment, after: int
) -> None:
    scene = Scene(SimulatedShoe)
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    with pytest.raises(PowerGone):
        scene.do(Load(decks=1))
    scene.restart()
    assert scene.events == [Cover(True), Cover(False), Loaded(1, 1, 52, 0)]
    assert scene.look()["left"] == 52


def test_no_card_is_out_whose_record_is_not_there() -> None:
    """And with gate-early there is one."""
    for broken in ((), ("gate-early",)):
        scene = table(*broken)
        scene.desk.cut_at = "before_commit"
        scene.do(Draw())
        with pytest.raises(PowerGone):
            scene.run()
        out = scene.make()
        scene.mechanism = out
        scene.desk.start(out, scene.now)
        scene.run()
        recorded = len(scene.those(CardRead))
        assert len(scene.look()["out"]) == (1 if broken else recorded)
        assert recorded == (0 if broken else 1)


# --- any order of hands ---------------------------------------------------------------------

ACTIONS = st.lists(
    st.one_of(
        st.builds(
            Draw,
            count=st.integers(1, 4),
            dwell_ms=st.integers(0, 200),
            read=st.sampled_from(["well", "low", "wrong", "unreadable", "no_index", "too_fast"]),
            double=st.booleans(),
            force=st.booleans(),
        ),
        st.builds(Retract),
        st.builds(MoveCover, open=st.booleans()),
        st.builds(SetJam, st.sampled_from([None, "stuck"])),
        st.builds(
            Load, decks=st.integers(0, 1), seed=st.integers(0, 9), cut_at=st.just(3) | st.none()
        ),
        st.sampled_from([OPEN, SHUT]),
        st.integers(0, 200),
        st.sampled_from(["restart", "fill", "empty", "cut"]),
    ),
    max_size=40,
)


@given(ACTIONS, st.booleans())
def test_each_position_is_recorded_exactly_once(actions: list[Any], gate: bool) -> None:
    """Replaying the events gives the cards that are out, each at its own position."""
    scene = Scene(lambda: SimulatedShoe(gate=gate))
    for action in actions:
        act(scene, action)
    scene.desk.room, scene.desk.cut_at = 1 << 30, None
    scene.run()
    out: list[int] = []
    loading = 0
    for event in scene.events:
        if isinstance(event, Loaded):
            assert event.shoe == loading + 1
            loading, out = event.shoe, []
        elif isinstance(event, CardRetracted):
            assert out.pop() == event.pos
        elif isinstance(event, CardRead | ReadFail | CutCard):
            assert event.pos == len(out) + 1
            out.append(event.pos)
        if isinstance(event, CardRead):
            assert event.shoe == loading
    look = scene.look()
    assert len(look["out"]) == len(out) == look["position"]
    assert (look["held"], look["owed"]) == ([], 0)
