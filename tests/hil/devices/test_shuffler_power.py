"""A simulated shuffler whose ring is full or whose power goes: a shuffle ends once. Breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import control
from firmware_protocol.device.control import MoveDoor, Put, SetJam
from firmware_protocol.messages import (
    Abort,
    CountError,
    DeviceState,
    Done,
    Eject,
    Fault,
    FaultCode,
    Progress,
    Refusal,
    ShufflerJam,
    Start,
    Started,
)
from hil.devices.pending_events import MAX_PENDING
from tests.support.hil.devices.desk import PowerGone, Scene, act
from tests.support.hil.devices.shoe_table import cannot
from tests.support.hil.devices.shuffler_table import ENDS, ends, machine, seeded, shuffle

# --- a full ring, restarts ------------------------------------------------------------------


def test_the_end_waits_for_room_in_the_ring() -> None:
    scene = machine()
    scene.desk.room = 4
    scene.call(Start(1, 0))
    scene.run(ms=20_000)
    assert not ends(scene)
    assert scene.look()["owed"] == 1
    scene.desk.room = 9
    scene.run()
    assert ends(scene) == [Done(1, 52, 0, 0, True)]
    assert scene.mechanism.due() is None


def test_progress_does_not_overtake_pending_events() -> None:
    scene = machine()
    scene.call(Start(1, 0))
    scene.desk.room = 0
    scene.do(SetJam("stuck"))
    scene.do(SetJam(None))
    before = len(scene.events)
    scene.desk.room = 1 << 30
    scene.run()
    kinds = [type(event) for event in scene.events[before:]]
    assert kinds[:3] == [ShufflerJam, ShufflerJam, Progress]
    assert kinds[-1] is Done


def test_pending_events_are_limited() -> None:
    scene = machine()
    scene.desk.room = 0
    for number in range(MAX_PENDING):
        scene.do(MoveDoor(open=number % 2 == 0))
    cannot(scene, MoveDoor(open=True), "no further event can be stored")
    cannot(scene, SetJam("stuck"), "no further event can be stored")
    cannot(scene, Put(decks=1), "no further event can be stored")
    assert scene.refused(Eject()) == Refusal.NOT_NOW


def test_a_restart_in_the_middle_aborts() -> None:
    scene = machine()
    scene.call(Start(1, 0))
    scene.run(ms=500)
    scene.restart()
    assert ends(scene) == [Fault(FaultCode.ABORTED, 1)]
    assert scene.mechanism.state() == DeviceState(0)
    scene.restart()
    assert ends(scene) == [Fault(FaultCode.ABORTED, 1)]
    assert shuffle(scene)[-1] == Done(2, 52, 0, 0, True)


def test_a_new_firmware_in_the_same_machine_aborts_too() -> None:
    scene = machine()
    scene.call(Start(1, 0))
    scene.run(ms=500)
    scene.desk.start(scene.mechanism, scene.now)
    scene.run()
    assert ends(scene) == [Fault(FaultCode.ABORTED, 1)]


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("after", range(21))
def test_a_shuffle_ends_once_after_a_power_cut(moment: control.Moment, after: int) -> None:
    scene = machine()
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    with pytest.raises(PowerGone):
        shuffle(scene)
    scene.restart()
    scene.run()
    assert scene.those(Started) == [Started(1, 1)]
    assert len(ends(scene)) == 1
    assert isinstance(scene.events[-1], ENDS)
    finished = after == 20  # the cut was in the commit of DONE, and it is still owed then
    assert isinstance(scene.events[-1], Done) == finished


@pytest.mark.parametrize("hand", [MoveDoor(open=True), SetJam("stuck")])
def test_cover_door_and_jam_survive_a_restart(hand: control.ControlRequest) -> None:
    scene = machine()
    scene.do(hand)
    state = scene.mechanism.state()
    scene.restart()
    assert scene.mechanism.state() == state


ACTIONS = st.lists(
    st.one_of(
        st.sampled_from([Start(1, 0), Start(2, 0), Abort(), Eject()]),
        st.builds(Put, decks=st.integers(1, 2), left_inside=st.integers(0, 1)),
        st.builds(MoveDoor, open=st.booleans()),
        st.builds(SetJam, st.sampled_from([None, "stuck", "left_inside"])),
        st.integers(0, 700),
        st.sampled_from(["restart", "safe", "fill", "empty", "cut"]),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_each_shuffle_ends_exactly_once_whatever_happens(actions: list[Any]) -> None:
    scene = Scene(seeded)
    for action in (*actions, "empty", SetJam(None), MoveDoor(open=False)):
        act(scene, action)
    scene.desk.cut_at = None
    scene.run()
    running = 0
    for event in scene.events:
        if isinstance(event, Started):
            assert not running
            running = event.shuffle
        elif isinstance(event, Done | Fault):
            assert running == (event.arg if isinstance(event, Fault) else event.shuffle)
            running = 0
        elif isinstance(event, CountError | Progress):
            assert running
            running = 0 if isinstance(event, CountError) else running
    assert not running
    assert not scene.look()["owed"]
