"""A simulated shoe whose ring is full or whose power goes: every card is recorded once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import (
    ControlRequest,
    Describe,
    Draw,
    Load,
    Mechanism,
    Moment,
    MoveCover,
    MoveDoor,
    PowerCut,
    Retract,
    RingMemory,
    SetJam,
    create_identity,
)
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    CardRetracted,
    Cover,
    CutCard,
    DeckKind,
    DeviceState,
    Event,
    Loaded,
    Lock,
    LockState,
    ReadFail,
)
from firmware_protocol.tablelink import EventRecord, decode_plaintext
from hil.devices import SimulatedShoe, card_names
from hil.devices.mechanism import MAX_PENDING
from hil.faults import faulty_device
from tests.support.hil.conform.tapped import Table
from tests.support.hil.devices.desk import (
    OPEN,
    SHUT,
    PowerGone,
    Scene,
    act,
    cannot,
    machine,
    names,
    table,
)

# --- gate, full ring, power -----------------------------------------------------------------


def test_the_gate_holds_a_card_while_the_ring_is_full() -> None:
    scene = table().play("fill", "safe")
    assert scene.do(Draw(count=2, force=True))["queued"] == 2
    assert scene.play(5000).shown("held", "out") == (["Ac"], [])
    assert not scene.those(CardRead)
    cannot(scene, Draw(force=True), "until the ring has space")
    cannot(scene, Retract(), "cards are being drawn")
    assert scene.play("empty", "idle").look()["out"] == names(scene.events) == ["Ac", "2c"]


def test_without_a_gate_the_card_is_out_and_its_record_follows() -> None:
    scene = table(make=lambda: SimulatedShoe(gate=False)).play(
        "fill", Draw(count=2, force=True), 5000
    )
    assert (scene.look()["out"], scene.those(CardRead)) == (["Ac"], [])
    assert names(scene.play("empty", "idle").events) == ["Ac", "2c"]


def test_events_at_a_full_ring_are_recorded_later_up_to_a_limit() -> None:
    moves = (MoveCover(open=True), MoveCover(open=False)) * (MAX_PENDING // 2)
    scene = table().play("fill", *moves)
    cannot(scene, MoveCover(open=True), "no further event can be stored")
    cannot(scene, SetJam("stuck"), "no further event can be stored")
    cannot(scene, Load(decks=1), "until the ring has space")
    scene.play("empty", "idle")
    assert scene.those(Cover)[2:] == [Cover(True), Cover(False)] * (MAX_PENDING // 2)
    assert scene.mechanism.due() is None


# --- restarts -------------------------------------------------------------------------------


def test_the_contents_of_a_shoe_survive_a_restart() -> None:
    scene = table(load=Load(decks=1, cards=("Ac", "2c", "Ac", "3c", "4c"))).play(
        Draw(count=2), "idle", Draw(count=3), 10
    )
    before = scene.events
    scene.restart()
    assert scene.mechanism.due() is None
    assert scene.events == before
    assert scene.shown("cards", "out") == (["Ac", "3c", "4c"], ["Ac", "2c"])
    last = scene.play(Retract(), OPEN, Draw(count=2), "idle").those(CardRead)[-2:]
    assert [(card_names.name(read.card), read.shoe, read.pos, read.flags) for read in last] == [
        ("2c", 1, 2, 0),
        ("Ac", 1, 3, CardFlags.DUPLICATE),
    ]


@pytest.mark.parametrize(
    ("loaded", "hand"),
    [
        (table, MoveCover(open=True)),
        (table, SetJam("stuck")),
        (machine, MoveDoor(open=True)),
        (machine, SetJam("stuck")),
    ],
)
def test_cover_door_and_jam_survive_a_restart(
    loaded: Callable[[], Scene], hand: ControlRequest
) -> None:
    scene = loaded().play(hand)
    kept = scene.mechanism.state() | DeviceState.LOCKED
    assert scene.play("restart").mechanism.state() == kept


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("after", [0, 1])
def test_every_card_is_reported_once_after_a_power_cut(
    moment: Moment, double: bool, after: int
) -> None:
    scene = table()
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    with pytest.raises(PowerGone):
        scene.play(Draw(count=4, double=double), "idle")
    recorded = CardRead | ReadFail
    out = scene.play("restart", "idle").look()["out"]
    assert len(out) == sum(isinstance(event, recorded) for event in scene.events)
    out, held = scene.play(OPEN, Draw(count=2), "idle").shown("out", "held")
    positions = [event.pos for event in scene.events if isinstance(event, recorded)]
    assert positions == list(range(1, len(out) + 1))
    assert (out, held) == (list(card_names.NAMES[: len(out)]), [])


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("after", range(3))
def test_every_loading_is_reported_once_after_a_power_cut(moment: Moment, after: int) -> None:
    scene = Scene(SimulatedShoe)
    scene.desk.cut_at, scene.desk.cut_after = moment, after
    with pytest.raises(PowerGone):
        scene.do(Load(decks=1))
    assert scene.play("restart").look()["left"] == 52
    assert scene.events == [Cover(True), Cover(False), Loaded(1, 1, 52, 0, DeckKind.FULL_52)]


@pytest.mark.parametrize(("broken", "recorded"), [((), 1), (("gate-early",), 0)])
def test_no_card_is_out_whose_record_is_not_there(broken: tuple[str, ...], recorded: int) -> None:
    """And with gate-early there is one."""
    scene = table(*broken)
    scene.desk.cut_at = "before_commit"
    with pytest.raises(PowerGone):
        scene.play(Draw(), "idle")
    out = scene.play("restart", "idle").look()["out"]
    assert (len(out), len(scene.those(CardRead))) == (1, recorded)


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
    scene.desk.cut_at = None
    scene.play("empty", "idle")
    out = loading = 0
    for event in scene.events:
        if isinstance(event, Loaded):
            assert event.shoe == loading + 1
            loading, out = event.shoe, 0
        elif isinstance(event, CardRetracted):
            assert event.pos == out
            out -= 1
        elif isinstance(event, CardRead | ReadFail | CutCard):
            out += 1
            assert event.pos == out
        if isinstance(event, CardRead):
            assert event.shoe == loading
    cards, *rest = scene.shown("out", "position", "held", "owed")
    assert (len(cards), *rest) == (out, out, [], 0)


SECOND = 1_000_000


class Alone:
    """A device without a host, in simulated time; made anew whenever its power goes."""

    def __init__(self, folder: Path, make: Callable[[], Mechanism]) -> None:
        self.now = 0
        self.make = make
        self.place = folder / "device"
        self.cuts = 0
        create_identity(self.place, make().device_class, "XX-1")
        self.start()

    def start(self) -> None:
        self.device = faulty_device(self.place, self.make(), now=self.now, sync=False)

    def do(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except PowerCut:
            self.cuts += 1
            self.now += SECOND
            self.start()

    def run(self) -> None:
        while (due := self.device.due()) is not None:
            self.now = max(self.now, due)
            self.do(lambda: self.device.wake(self.now))

    def hand(self, hand: Any) -> None:
        self.do(lambda: self.device.request(hand, self.now))

    def look(self) -> Any:
        return self.device.request(Describe(), self.now)["mechanism"]

    def events(self) -> list[Event]:
        ring = self.device.ring
        raw = (ring.record(seq) for seq in range(ring.oldest, ring.head + 1))
        records = (decode_plaintext(one, sender="device") for one in raw)
        return [record.event for record in records if isinstance(record, EventRecord)]


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("moment", ["before_commit", "in_commit", "after_commit"])
def test_a_card_is_recorded_once_if_its_commit_is_cut(
    tmp_path: Path, moment: Moment, gate: bool
) -> None:
    alone = Alone(tmp_path, lambda: SimulatedShoe(gate=gate))
    alone.hand(Load(decks=1))
    for double in (False, True):
        alone.device.cut_at(moment)
        alone.hand(Draw(force=True, double=double))
        alone.run()
    alone.hand(Draw(count=3, force=True))
    alone.run()
    assert (alone.cuts, len(alone.look()["out"])) == (2, 6)
    told = [event.pos for event in alone.events() if isinstance(event, CardRead | ReadFail)]
    # Without a gate a card is out before: a record may be lost, and its position shows it.
    assert told == list(range(1, 7)) if gate else len(told) < 6
    assert told == sorted(set(told))


def test_a_full_ring_locks_and_the_gate_holds_until_the_host_has_caught_up(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path, keeps=False)
    table.request(Load(decks=1))
    table.call(Lock(LockState.OPEN))
    table.play(RingMemory("fill"), 500)
    full = DeviceState.FULL | DeviceState.LOCKED
    assert table.stand.firmware.state() & full == full
    table.play(Draw(force=True), 1000)
    look = table.look()["mechanism"]
    assert (look["held"], look["out"]) == (["Ac"], [])
    table.keeps = True
    table.keep_up()
    table.run(10_000)
    look = table.look()["mechanism"]
    assert (look["held"], look["out"], look["lock"]) == ([], ["Ac"], "locked")
    assert [one.event.card for one in table.records if isinstance(one.event, CardRead)] == [0]
    assert table.stand.firmware.state() & full == DeviceState.LOCKED
