"""The simulated shuffler without a wire: batches, the motor, the door, jams, power cuts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import (
    Draw,
    InjectDefect,
    Jam,
    Moment,
    MoveDoor,
    Put,
    SetJam,
    ShufflePace,
)
from firmware_protocol.messages import (
    Abort,
    Capabilities,
    CountError,
    DeckKind,
    DeviceState,
    Done,
    Door,
    Eject,
    EjectReply,
    Fault,
    FaultCode,
    JamCode,
    Lock,
    LockState,
    Progress,
    Refusal,
    ShufflerJam,
    Start,
    Started,
    StartReply,
)
from hil.devices import SimulatedShuffler, card_names
from hil.devices.mechanism import MAX_PENDING
from tests.support.hil.devices.desk import (
    SECOND,
    STEPS,
    PowerGone,
    Scene,
    act,
    cannot,
    ends,
    machine,
    seeded,
    shuffle,
)

# --- a shuffle ------------------------------------------------------------------------------


def test_a_shuffle_from_start_to_end() -> None:
    scene = machine(put=Put(decks=2))
    start, states = scene.now, [scene.mechanism.state()]
    assert scene.call(Start(2, 0, DeckKind.FULL_52)) == StartReply(1)
    states += [scene.mechanism.state(), scene.play("idle").mechanism.state()]
    running = DeviceState.CARDS | DeviceState.RUNNING | DeviceState.LOCKED
    assert states == [DeviceState.CARDS, running, DeviceState.CARDS]
    assert scene.events == [
        Door(True),
        Door(False),
        Started(1, 2),
        *(Progress(percent) for percent in STEPS),
        Done(1, 104, 0, 0, True),
    ]
    assert scene.at(Progress) == [start + percent * SECOND // 100 for percent in STEPS]
    assert (scene.at(Started), scene.at(Done)) == ([start], [start + SECOND])
    assert scene.mechanism.due() is None


def test_the_order_is_real_and_its_seeds() -> None:
    boxed = list(card_names.NAMES)
    seeded, same = machine(), machine()
    drawn, other = (machine(make=lambda: SimulatedShuffler(shuffle_ms=10)) for _ in range(2))
    assert seeded.look()["cards"] == boxed
    other.desk.draw(1)
    orders = [
        scene.play(Start(1, 0, DeckKind.FULL_52), "idle").look()["cards"]
        for scene in (seeded, same, same, drawn, other)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert orders[3] != orders[4]
    assert all(order != boxed and sorted(order) == sorted(boxed) for order in orders)


def test_numbers_go_on_over_restarts() -> None:
    scene = machine().play(
        Start(1, 0, DeckKind.FULL_52), "idle", "restart", Start(1, 0, DeckKind.FULL_52), "idle"
    )
    ended = [done.shuffle for done in scene.those(Done)]
    assert [started.shuffle for started in scene.those(Started)] == ended == [1, 2]


def test_a_late_wake_reports_the_latest_progress_only() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52))
    for late, ended in ((SECOND * 42 // 100, 0), (SECOND, 1)):
        scene.now += late
        scene.mechanism.wake(scene.now)
        assert (scene.those(Progress), len(scene.those(Done))) == ([Progress(40)], ended)


def test_the_pace() -> None:
    scene = machine().play(ShufflePace(0), Start(1, 0, DeckKind.FULL_52), "idle")
    assert scene.events[-1:] == [Done(1, 52, 0, 0, True)]
    scene.play(ShufflePace(3000), Start(1, 0, DeckKind.FULL_52), "idle")
    times = zip(scene.at(Started), scene.at(Done), strict=True)
    assert [end - start for start, end in times] == [0, 3 * SECOND]
    assert scene.play(Start(1, 0, DeckKind.FULL_52), 1500).look()["percent"] == 50
    assert scene.play(ShufflePace(1000), 1).look()["running"] == 0  # it is over then
    assert len(scene.those(Done)) == 3


# --- wrong batches --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("put", "got"),
    [
        (Put(decks=1, remove=("Ks",)), 51),
        (Put(decks=1, add=("Ks",)), 53),
        (Put(decks=2), 104),
        (Put(decks=1, left_inside=3), 49),
    ],
)
def test_a_wrong_number_of_cards(put: Put, got: int) -> None:
    scene = machine(put=put)
    assert shuffle(scene) == [Started(1, 1), CountError(52, got)]
    assert scene.look()["count"] == got


def test_an_empty_machine_does_not_start() -> None:
    scene = Scene(seeded)
    assert scene.refused(Start(1, 0, DeckKind.FULL_52)) == Refusal.EMPTY
    assert DeviceState.CARDS not in scene.mechanism.state()
    assert shuffle(scene.play(Put(decks=1)))[-1] == Done(1, 52, 0, 0, True)
    scene.play(Eject(), MoveDoor(open=False))
    assert scene.refused(Start(1, 0, DeckKind.FULL_52)) == Refusal.EMPTY
    assert shuffle(scene.play(Put(decks=1)))[-1] == Done(2, 52, 0, 0, True)
    scene.play(Put(decks=0))
    assert scene.refused(Start(1, 0, DeckKind.FULL_52)) == Refusal.EMPTY


def test_without_a_sensor_an_empty_machine_counts_none() -> None:
    blind = Scene(lambda: SimulatedShuffler(card_sensor=False))
    assert Capabilities.CARD_SENSOR not in blind.mechanism.capabilities
    assert shuffle(blind) == [Started(1, 1), CountError(52, 0)]
    blind.play(Put(decks=1))
    assert blind.mechanism.state() == DeviceState(0)


def test_decks_of_48_cards() -> None:
    spanish, full = DeckKind.SPANISH_48, DeckKind.FULL_52
    scene = machine(put=Put(decks=2, kind="spanish_48"))
    assert "Tc" not in scene.look()["cards"]
    for kind, end in ((full, CountError(104, 96)), (spanish, Done(2, 96, 0, 0, True))):
        scene.play(Start(2, 0, kind), "idle")
        assert ends(scene)[-1] == end
        assert scene.look()["kind"] == kind.name.lower()
    swapped = machine(put=Put(decks=1, kind="spanish_48", remove=("Kc",), add=("Tc",)))
    swapped.play(Start(1, 0, spanish), "idle")
    assert ends(swapped)[-1] == Done(1, 48, 1, 1, True)


def test_other_cards_than_the_decks_have() -> None:
    put = Put(decks=1, remove=("Ks", "Kh"), add=("Ac", "Ac"))
    assert shuffle(machine(put=put))[-1] == Done(1, 52, 2, 2, True)
    blind = machine(put=put, make=lambda: SimulatedShuffler(deck_check=False))
    assert blind.mechanism.capabilities == Capabilities.EJECT | Capabilities.CARD_SENSOR
    assert shuffle(blind)[-1] == Done(1, 52, 0, 0, True)


def test_cards_left_inside_come_out_with_the_next_batch() -> None:
    scene = machine(put=Put(decks=1, left_inside=2)).play(Start(1, 0, DeckKind.FULL_52), "idle")
    assert len(scene.look()["left_inside"]) == 2
    scene.play("restart", Put(decks=1))
    assert shuffle(scene)[-1] == CountError(52, 54)
    assert scene.look()["left_inside"] == []


def test_cards_left_inside_are_taken_out_by_hand() -> None:
    scene = machine(put=Put(decks=1, left_inside=2)).play(
        Start(1, 0, DeckKind.FULL_52), "idle", SetJam("left_inside")
    )
    assert scene.refused(Start(1, 0, DeckKind.FULL_52)) == Refusal.NOT_NOW
    scene.play(SetJam(None), Put(decks=1))
    assert shuffle(scene)[-1] == Done(2, 52, 0, 0, True)


def test_more_stay_inside_than_there_are() -> None:
    put = Put(decks=1, remove=card_names.NAMES[:50], left_inside=52)
    assert shuffle(machine(put=put))[-1] == CountError(52, 0)


def test_a_sorted_deck_fails_the_generators_own_test() -> None:
    scene = machine(put=Put(decks=1, sorted=True))
    assert shuffle(scene)[-1] == Done(1, 52, 0, 0, False)
    assert scene.look()["cards"] == list(card_names.NAMES)
    assert scene.mechanism.selftest(scene.now) == ((FaultCode.RANDOM, 0),)
    scene.do(Put(decks=1))
    assert shuffle(scene)[-1] == Done(2, 52, 0, 0, True)
    assert scene.mechanism.selftest(scene.now) == ()


# --- refusals -------------------------------------------------------------------------------


def test_start_is_refused_while_it_cannot_be() -> None:
    scene = machine()
    for steps, state in (
        ([MoveDoor(open=True)], DeviceState.OPEN | DeviceState.LOCKED),
        ([MoveDoor(open=False), SetJam("stuck")], DeviceState.JAMMED | DeviceState.LOCKED),
        ([SetJam(None), "fill"], DeviceState.LOCKED),
        (["empty", Start(1, 0, DeckKind.FULL_52)], DeviceState.RUNNING | DeviceState.LOCKED),
    ):
        assert scene.play(*steps).mechanism.state() == state | DeviceState.CARDS
        assert scene.refused(Start(1, 0, DeckKind.FULL_52)) == Refusal.NOT_NOW, steps
    assert [started.shuffle for started in scene.those(Started)] == [1]


def test_commands_and_requests_that_it_does_not_support() -> None:
    scene = machine()
    assert scene.refused(Start(1, 1, DeckKind.FULL_52)) == Refusal.UNSUPPORTED
    assert scene.refused(Lock(LockState.OPEN)) == Refusal.UNKNOWN
    assert not scene.those(Started)
    cannot(scene, Draw(), "a shuffler has no draw")
    assert scene.do(InjectDefect("motor")) == {}
    plain = machine(make=lambda: SimulatedShuffler(eject=False, card_sensor=False, gateway=True))
    assert plain.mechanism.capabilities == Capabilities.DECK_CHECK | Capabilities.GATEWAY
    assert plain.refused(Eject()) == Refusal.UNSUPPORTED


# --- the door -------------------------------------------------------------------------------


def test_eject_opens_the_door_and_hands_the_cards_out() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), "idle")
    order, doors = scene.look()["cards"], scene.those(Door)
    assert scene.call(Eject()) == EjectReply()
    assert scene.shown("handed_out", "count") == (order, 0)
    assert scene.call(Eject()) == EjectReply()
    assert shuffle(scene.play(Put(decks=1)))[-1] == Done(2, 52, 0, 0, True)
    assert scene.those(Door) == [*doors, Door(True), Door(True), Door(False)]


def test_eject_is_refused_while_a_shuffle_runs() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52))
    assert scene.refused(Eject()) == Refusal.NOT_NOW
    scene.play("idle", Eject())


def test_the_door_is_barred_while_the_motor_turns() -> None:
    scene = machine()
    assert scene.do(MoveDoor(open=False)) == {"changed": False}
    scene.call(Start(1, 0, DeckKind.FULL_52))
    cannot(scene, MoveDoor(open=True), "barred")
    cannot(scene, Put(decks=1), "a shuffle runs")
    scene.run()
    assert [scene.do(MoveDoor(open=True))["changed"] for _ in range(2)] == [True, False]
    assert scene.those(Door)[2:] == [Door(True)]


@pytest.mark.parametrize(
    ("put", "says"),
    [
        (Put(decks=1, remove=("Ks", "Ks")), "no Ks left"),
        (Put(decks=1, add=("cut",)), "cut card"),
    ],
)
def test_a_batch_that_cannot_be_is_turned_away(put: Put, says: str) -> None:
    cannot(machine(), put, says)


# --- jams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", Jam.__args__)  # type: ignore[attr-defined]
def test_a_jam_pauses_a_shuffle_until_it_is_cleared(code: Jam) -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), 437)
    assert [scene.do(SetJam(code))["changed"] for _ in range(2)] == [True, False]
    stuck = DeviceState.JAMMED | DeviceState.RUNNING | DeviceState.LOCKED | DeviceState.CARDS
    assert scene.mechanism.state() == stuck
    told = scene.those(Progress)
    assert scene.play(60_000).look()["percent"] == 43
    assert scene.those(Progress) == told
    cannot(scene, Put(decks=1), "a shuffle runs")
    assert scene.do(MoveDoor(open=True)) == {"changed": True}
    assert [scene.do(SetJam(None))["changed"] for _ in range(2)] == [True, False]
    assert scene.play(60_000).look()["percent"] == 43
    over_at = scene.now + (1000 - 437) * 1000
    assert scene.play(MoveDoor(open=False), "idle").at(Done) == [over_at]
    assert scene.those(ShufflerJam) == [ShufflerJam(JamCode[code.upper()]), ShufflerJam(JamCode(0))]
    assert [progress.percent for progress in scene.those(Progress)] == STEPS


def test_nothing_is_put_in_while_cards_are_stuck() -> None:
    cannot(machine().play(SetJam("motor")), Put(decks=1), "cards are stuck")


# --- abort ----------------------------------------------------------------------------------


def test_a_jammed_shuffle_can_be_aborted() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), SetJam("stuck"), Abort())
    stuck = DeviceState.JAMMED | DeviceState.LOCKED | DeviceState.CARDS
    assert scene.mechanism.state() == stuck
    assert ends(scene) == [Fault(FaultCode.ABORTED, 1)]


# --- a full ring, restarts ------------------------------------------------------------------


def test_the_end_waits_for_room_in_the_ring() -> None:
    scene = machine()
    scene.desk.room = 4
    scene.play(Start(1, 0, DeckKind.FULL_52), 20_000)
    assert (ends(scene), scene.look()["owed"]) == ([], 1)
    assert ends(scene.play("empty", "idle")) == [Done(1, 52, 0, 0, True)]
    assert scene.mechanism.due() is None


def test_progress_does_not_overtake_pending_events() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), "fill", SetJam("stuck"), SetJam(None))
    before = len(scene.events)
    kinds = [type(event) for event in scene.play("empty", "idle").events[before:]]
    assert [*kinds[:3], kinds[-1]] == [ShufflerJam, ShufflerJam, Progress, Done]


def test_pending_events_are_limited() -> None:
    moves = (MoveDoor(open=True), MoveDoor(open=False)) * (MAX_PENDING // 2)
    scene = machine().play("fill", *moves)
    for hand in (MoveDoor(open=True), SetJam("stuck"), Put(decks=1)):
        cannot(scene, hand, "no further event can be stored")
    assert scene.refused(Eject()) == Refusal.NOT_NOW


def test_a_restart_in_the_middle_aborts() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), 500)
    for _ in range(2):
        assert ends(scene.play("restart")) == [Fault(FaultCode.ABORTED, 1)]
        assert scene.mechanism.state() == DeviceState.CARDS
    assert shuffle(scene)[-1] == Done(2, 52, 0, 0, True)


def test_a_new_firmware_in_the_same_machine_aborts_too() -> None:
    scene = machine().play(Start(1, 0, DeckKind.FULL_52), 500)
    scene.desk.start(scene.mechanism, scene.now)
    scene.run()
    assert ends(scene) == [Fault(FaultCode.ABORTED, 1)]


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("after", range(21))
def test_a_shuffle_ends_once_after_a_power_cut(moment: Moment, after: int) -> None:
    scene = machine()
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    with pytest.raises(PowerGone):
        shuffle(scene)
    scene.play("restart", "idle")
    assert scene.those(Started) == [Started(1, 1)]
    assert ends(scene) == scene.events[-1:]
    finished = after == 20  # the cut was in the commit of DONE, and it is still owed then
    assert isinstance(scene.events[-1], Done) == finished


ACTIONS = st.lists(
    st.one_of(
        st.sampled_from(
            [Start(1, 0, DeckKind.FULL_52), Start(2, 0, DeckKind.FULL_52), Abort(), Eject()]
        ),
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
