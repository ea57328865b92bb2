"""The simulated shoe without a wire: loading, drawing, lock, cover, jams, pulls not made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import (
    Describe,
    Draw,
    InjectDefect,
    Jam,
    Load,
    MoveCover,
    Retract,
    SetJam,
    ShufflePace,
)
from firmware_protocol.messages import (
    CARD_UNREAD,
    DEAD_MS,
    CardFlags,
    CardRead,
    CardRetracted,
    Cover,
    DeckKind,
    DeviceState,
    Eject,
    JamCode,
    Loaded,
    LockReply,
    LockState,
    Refusal,
    ShoeJam,
)
from hil.devices import SimulatedShoe, card_names
from hil.devices.shoe import GAP_MS, RECOGNISE_MS
from tests.support.hil.devices.desk import (
    ONE_MS,
    OPEN,
    SHUT,
    Scene,
    cannot,
    draw,
    names,
    read_card,
    table,
)
from tests.support.hil.devices.meeting import Meeting

# --- loading --------------------------------------------------------------------------------


def test_loading_opens_the_cover_and_closes_it() -> None:
    scene = Scene(SimulatedShoe)
    assert scene.do(Load(decks=6, seed=3, shuffle=77)) == {"shoe": 1, "count": 312}
    scene.play(MoveCover(open=True), Load(decks=0))
    moves = [Cover(True), Cover(False)]
    assert scene.events == [
        *moves,
        Loaded(1, 6, 312, 77, DeckKind.FULL_52),
        *moves,
        Loaded(2, 0, 0, 0, DeckKind.FULL_52),
    ]


def test_a_box_is_in_order_and_a_seed_gives_one_order() -> None:
    scene = Scene(SimulatedShoe)
    boxed, order, again, other = (
        scene.play(load).look()["cards"]
        for load in (Load(decks=2), *(Load(decks=1, seed=seed) for seed in (5, 5, 6)))
    )
    assert boxed == list(card_names.NAMES) * 2
    assert order == again != other
    assert order != list(card_names.NAMES)
    assert sorted(order) == sorted(card_names.NAMES)


@pytest.mark.parametrize(
    ("load", "count", "order"),
    [
        (Load(cards=("Ac", "Kd")), 2, ["Ac", "Kd"]),
        (Load(cards=("Ac", "cut", "Kd")), 2, ["Ac", "cut", "Kd"]),
        (Load(cards=("Ac", "Kd"), cut_at=2), 2, ["Ac", "Kd", "cut"]),
        (Load(cards=("Ac", "Kd", "Ac"), remove=("Ac",), add=("2h",)), 3, ["Kd", "Ac", "2h"]),
        (Load(decks=1, remove=("Ks",)), 51, list(card_names.NAMES[:-1])),
        (Load(decks=1, add=("Ks",)), 53, [*card_names.NAMES, "Ks"]),
        (Load(decks=1, cut_at=1), 52, ["Ac", "cut", *card_names.NAMES[1:]]),
    ],
)
def test_any_order_and_any_number_of_cards(load: Load, count: int, order: list[str]) -> None:
    scene = Scene(SimulatedShoe)
    assert scene.do(load)["count"] == scene.those(Loaded)[0].count == count
    assert scene.look()["cards"] == order


@pytest.mark.parametrize(
    ("load", "says"),
    [
        (Load(decks=1, remove=("Ks", "Ks")), "no Ks left"),
        (Load(decks=1, remove=("cut",)), "cut card"),
        (Load(decks=1, add=("cut",)), "cut card"),
        (Load(decks=1, cut_at=53), "1 to 52"),
        (Load(cards=("cut", "Ac"), cut_at=1), "among the cards already"),
        (Load(cards=("Ac",) * 10_001), "at most 10000"),
    ],
)
def test_a_load_that_cannot_be_is_turned_away(load: Load, says: str) -> None:
    cannot(table(), load, says)


def test_loadings_are_numbered_over_restarts() -> None:
    loadings = table().play("restart", Load(decks=1)).those(Loaded)
    assert [loaded.shoe for loaded in loadings] == [1, 2]


# --- drawing --------------------------------------------------------------------------------


def test_cards_come_one_after_the_other_at_an_even_pace() -> None:
    scene = table()
    start = scene.now
    assert scene.do(Draw(count=3, dwell_ms=100)) == {
        "queued": 3,
        "ms": 3 * (100 + RECOGNISE_MS) + 2 * GAP_MS,
    }
    assert scene.shown("over_reader", "queued") == (["Ac"], 2)
    scene.run()
    step = (100 + RECOGNISE_MS + GAP_MS) * 1000
    first = start + (100 + RECOGNISE_MS) * 1000
    assert scene.at(CardRead) == [first, first + step, first + 2 * step]
    reads = [(card_names.name(read.card), read.dwell) for read in scene.those(CardRead)]
    assert reads == [("Ac", 100), ("2c", 100), ("3c", 100)]
    assert scene.shown("position", "left", "out") == (3, 49, ["Ac", "2c", "3c"])


def test_the_answer_has_the_time_of_the_last_card() -> None:
    scene = table().play(Draw(count=2), 20, Draw(count=2, dwell_ms=7))
    end = scene.now + scene.do(Draw(count=2, dwell_ms=8))["ms"] * 1000
    scene.run()
    assert (scene.now, len(scene.those(CardRead))) == (end, 6)


def test_a_pull_right_after_another_waits_for_the_hand() -> None:
    first, second = table().play(Draw(), "idle", Draw(), "idle").at(CardRead)
    assert second - first == (GAP_MS + ONE_MS) * 1000


def test_a_card_as_it_should_be() -> None:
    read = read_card(table(load=Load(decks=1, cards=("Th",))))
    assert read == CardRead(
        shoe=1,
        pos=1,
        card=card_names.number("Th"),
        confidence=99,
        alternative=CARD_UNREAD,
        flags=CardFlags(0),
        dwell=40,
        back=1,
        salt=read.salt,
    )
    assert len(read.salt) == 11


def test_before_the_first_loading_there_is_nothing_to_draw() -> None:
    empty = Scene(SimulatedShoe).play(OPEN)
    cannot(empty, Draw(), "not enough cards left")
    assert empty.look()["loading"] == 0


def test_no_more_come_out_than_are_inside() -> None:
    scene = table(load=Load(cards=("Ac", "2c", "3c", "4c", "5c")))
    assert [scene.do(Draw(count=count))["queued"] for count in (2, 9)] == [2, 3]
    cannot(scene, Draw(), "not enough cards left")
    assert names(scene.play("idle").events) == ["Ac", "2c", "3c", "4c", "5c"]
    cannot(scene, Draw(), "not enough cards left")


@given(st.integers(0, 65_535))
def test_the_dwell_is_the_hands(dwell_ms: int) -> None:
    scene = table(load=Load(cards=("Ac",))).play(Draw(dwell_ms=dwell_ms), "idle")
    assert scene.those(CardRead)[0].dwell == dwell_ms
    assert scene.at(CardRead)[0] - scene.at(Loaded)[0] == (dwell_ms + RECOGNISE_MS) * 1000


@pytest.mark.parametrize("read", ["well", "low", "wrong", "unreadable", "too_fast", "foreign"])
@pytest.mark.parametrize("card", [*card_names.NAMES[::5], "cut"])
def test_reading_time_does_not_depend_on_the_card(card: str, read: Any) -> None:
    scene = table(load=Load(cards=(card, "Ac")))
    start = scene.now
    draw(scene, count=2, read=read)
    times = [one.t_us for one in scene.desk.records[-2:]]
    assert [at - start for at in times] == [ONE_MS * 1000, (2 * ONE_MS + GAP_MS) * 1000]


# --- lock -----------------------------------------------------------------------------------


def test_a_shoe_is_locked_after_a_start_and_after_the_session() -> None:
    scene = Scene(SimulatedShoe).play(Load(decks=1))
    assert scene.look()["lock"] == "locked"
    cannot(scene, Draw(), "locked")
    replies = [scene.call(command) for command in (OPEN, SHUT, SHUT)]
    assert replies == [LockReply(one) for one in (LockState.OPEN, *[LockState.LOCKED] * 2)]
    steps = (["safe"], [OPEN], ["safe"], [OPEN, SHUT], [SHUT], [OPEN, "restart"])
    states = [scene.play(*step).mechanism.state() for step in steps]
    assert states == [DeviceState(0) if one == [OPEN] else DeviceState.LOCKED for one in steps]


def test_a_full_ring_keeps_it_locked() -> None:
    scene = table()
    scene.desk.room = 1
    draw(scene)
    assert (scene.mechanism.state(), scene.refused(OPEN)) == (DeviceState.LOCKED, Refusal.NOT_NOW)
    assert scene.play(SHUT, "empty").mechanism.state() == DeviceState.LOCKED
    assert names(draw(scene.play(OPEN))) == ["2c"]


def test_a_shoe_without_a_lock_is_open() -> None:
    scene = table(make=lambda: SimulatedShoe(lock=False))
    assert [scene.refused(command) for command in (OPEN, SHUT)] == [Refusal.UNSUPPORTED] * 2
    assert scene.mechanism.state() == DeviceState(0)
    assert names(draw(scene.play("safe"))) == ["Ac"]


def test_a_card_forced_out_of_a_locked_shoe_is_reported_like_any_other() -> None:
    scene = table().play(SHUT)
    assert names(draw(scene, force=True)) == ["Ac"]
    assert scene.mechanism.state() == DeviceState.LOCKED


@pytest.mark.parametrize("locks", [SHUT, "safe"])
def test_locking_cancels_all_pulls_but_the_current_one(locks: Any) -> None:
    second_is_over_the_reader = ONE_MS + GAP_MS + 1
    scene = table().play(Draw(count=5), second_is_over_the_reader, locks, "idle")
    assert (names(scene.events), scene.look()["left"]) == (["Ac", "2c"], 50)


def test_a_lock_does_not_stop_force() -> None:
    events = table().play(Draw(count=3, force=True), SHUT, "idle").events
    assert names(events) == ["Ac", "2c", "3c"]


# --- retract, cover, jam --------------------------------------------------------------------


def test_a_retracted_card_gives_its_position_back() -> None:
    scene = table(load=Load(decks=1, cards=("Ac", "2c", "3c"))).play(Draw(count=2), "idle")
    assert [scene.do(Retract()) for _ in range(2)] == [{"pos": 2}, {"pos": 1}]
    assert scene.those(CardRetracted) == [CardRetracted(2), CardRetracted(1)]
    assert scene.look()["cards"] == ["Ac", "2c", "3c"]
    cannot(scene, Retract(), "no card of this loading is out")
    reads = scene.play(Draw(count=3), "idle").those(CardRead)
    assert [(read.pos, read.flags) for read in reads[2:]] == [(1, 0), (2, 0), (3, 0)]
    assert len({read.salt for read in reads}) == 5


def test_a_locked_shoe_takes_a_card_back() -> None:
    scene = table(load=Load(decks=1, cards=("Ac", "Ac"))).play(Draw(count=2), "idle")
    scene.play(Retract(), "safe", Retract(), Draw(count=2, force=True), "idle")
    assert scene.those(CardRetracted) == [CardRetracted(2), CardRetracted(1)]
    flags = [read.flags for read in scene.those(CardRead)]
    assert flags == [0, CardFlags.DUPLICATE] * 2


def test_a_new_loading_restarts_positions() -> None:
    scene = table().play(Draw(count=3), "idle", Load(decks=1))
    cannot(scene, Retract(), "no card of this loading is out")
    read = read_card(scene)
    assert (read.shoe, read.pos, read.flags) == (2, 1, 0)


def test_the_cover() -> None:
    scene = table()
    assert scene.do(MoveCover(open=False)) == {"changed": False}
    scene.do(Draw(count=3))
    changed = [scene.do(MoveCover(open=True))["changed"] for _ in range(2)]
    assert (changed, scene.mechanism.state()) == ([True, False], DeviceState.OPEN)
    assert names(scene.play("idle").events) == ["Ac"]
    for hand in (Draw(), Draw(force=True), Retract()):
        cannot(scene, hand, "cover is open")
    assert scene.do(MoveCover(open=False)) == {"changed": True}
    assert scene.those(Cover)[2:] == [Cover(True), Cover(False)]
    assert names(draw(scene)) == ["2c"]


@pytest.mark.parametrize("code", Jam.__args__)  # type: ignore[attr-defined]
def test_every_jam_stops_the_shoe_until_it_is_freed(code: Jam) -> None:
    scene = table()
    changed = [scene.do(SetJam(code))["changed"] for _ in range(2)]
    assert (changed, scene.mechanism.state()) == ([True, False], DeviceState.JAMMED)
    for hand in (Draw(), Draw(force=True), Retract(), Load(decks=1)):
        cannot(scene, hand, "cards are stuck")
    assert [scene.do(SetJam(None))["changed"] for _ in range(2)] == [True, False]
    assert scene.those(ShoeJam) == [ShoeJam(JamCode[code.upper()]), ShoeJam(JamCode.CLEARED)]
    assert names(draw(scene)) == ["Ac"]


def test_a_card_that_gets_stuck_over_the_reader_comes_out_when_freed() -> None:
    scene = table().play(
        Draw(count=3, dwell_ms=100), 30, SetJam("stuck"), 1000, SetJam("motor"), 500
    )
    assert not scene.those(CardRead)
    cannot(scene, Load(decks=1), "being drawn")
    out_at = scene.now + (70 + RECOGNISE_MS) * 1000
    (read,) = scene.play(SetJam(None), "idle").those(CardRead)
    assert (card_names.name(read.card), read.dwell) == ("Ac", 1600)
    assert scene.at(CardRead) == [out_at]


def test_nothing_is_changed_while_cards_are_on_their_way() -> None:
    scene = table().play(Draw(), "idle", Draw(count=2))
    cannot(scene, Load(decks=1), "being drawn")
    cannot(scene, Retract(), "being drawn")
    between_two_cards = ONE_MS + 1
    cannot(scene.play(between_two_cards), Retract(), "being drawn")


def test_requests_of_other_classes_are_denied() -> None:
    scene = table()
    cannot(scene, ShufflePace(5), "a shoe has no pace.*draw")
    assert scene.refused(Eject()) == Refusal.UNKNOWN
    assert scene.do(InjectDefect("gate")) == {}


ENDS = {
    "lock": SHUT,
    "safe state": "safe",
    "cover": MoveCover(open=True),
    "jam": SetJam("stuck"),
}
"""Steps of a scene that cancel pulls, by the cause that is shown."""


def pulls(scene: Scene, *steps: Any) -> tuple[Any, ...]:
    """After these steps: pulls that wait, and those that were not made, with their cause."""
    return scene.play(*steps).shown("queued", "undrawn", "undrawn_why")


@pytest.mark.parametrize("why", ENDS)
def test_cancelled_pulls_are_counted_with_their_cause(why: str) -> None:
    scene, second_is_over_the_reader = table(), ONE_MS + GAP_MS + 1
    assert pulls(scene) == pulls(scene, Draw(count=2), "idle") == (0, 0, None)
    scene.play(GAP_MS, Draw(count=5), second_is_over_the_reader)  # and comes out
    assert pulls(scene, ENDS[why]) == pulls(scene, ENDS[why]) == (0, 3, why)
    assert pulls(scene, "restart") == (0, 0, None)


def test_forced_pulls_are_not_cancelled() -> None:
    scene = table().play(Draw(count=3), Draw(count=4, force=True))
    assert pulls(scene, "safe") == (4, 2, "safe state")
    assert pulls(scene, "idle") == (0, 2, "safe state")
    assert len(scene.those(CardRead)) == 5


def test_a_full_ring_ends_them_too() -> None:
    scene = table()
    scene.desk.room = 2
    assert pulls(scene, Draw(count=6), "idle") == (0, 4, "safe state")
    assert len(scene.those(CardRead)) == 2


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
    draws = [Draw(count=some, double=double) for some in (count, more) if some]
    asked = sum(scene.do(one)["queued"] for one in draws)
    out, undrawn = scene.play(ms, ENDS[why], SetJam(None), "idle").shown("out", "undrawn")
    assert asked == len(out) // (2 if double else 1) + undrawn


def test_a_host_that_dies(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, SimulatedShoe)
    meeting.open()
    meeting.play(500, Load(decks=6, seed=1))
    meeting.link.call(OPEN, meeting.now)
    meeting.run(100)
    assert meeting.request(Draw(count=100))["queued"] == 100
    before = meeting.look()["mechanism"]
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
