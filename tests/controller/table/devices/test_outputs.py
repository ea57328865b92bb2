"""Settings reach devices over lines that fail, the shoe is locked when it must be, links are faults
only if they are away for long; and no shuffle is started twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from controller.audit.errors import RetryLater
from controller.audit.format.records import RecordEntry
from controller.procedure.model.effects import ShoeLock, Stations
from controller.procedure.model.events import DeviceLost
from controller.procedure.model.state import WAITING, State, Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.devices.lamps import LAMPS
from controller.table.devices.links import LOST_AFTER, DeviceLink
from controller.table.devices.outputs import (
    NONE_RUNS,
    REARM_INTERVAL,
    RETRY_DELAY,
    DeviceOutputs,
    ShuffleStarter,
)
from controller.table.loop import TableStopped
from controller.table.memory import ButtonTokens, TableDisplay
from controller.table.memory.display import SeatButtons
from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    InDoubt,
    LinkState,
    NotReady,
    ResultMissing,
)
from drivers.devices.station import LampSetting
from firmware_protocol.device import CannotDo, Draw, SetJam, ShufflePace
from firmware_protocol.host import LinkBusy, RingHeld
from firmware_protocol.messages import ButtonMask, DeckKind, Lock, LockState, Refusal, Start
from hil.table.robots.robot import mechanism
from tests.support.asynchronous import in_turn, raised, simulated, simulated_in
from tests.support.drivers.simulated import stopped, until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import (
    DEALER,
    FLOOR,
    SECOND,
    SHOE,
    Served,
    room,
    run,
    serving,
)
from tests.support.table.simulated.telling import DEAL, Setting, Told, opened, telling

AWAY = NotReady(LinkState.ABSENT, "not plugged in")
REFUSED = CommandRefusedError(Lock(LockState.OPEN), Refusal.NOT_NOW, 0)
HOPELESS = CommandRefusedError(Lock(LockState.OPEN), Refusal.UNSUPPORTED, 0)
UNANSWERED = CommandUnansweredError(Lock(LockState.OPEN), sent=True)
BUSY = LinkBusy("too much on its way")
HIT = ButtonMask.HIT | ButtonMask.STAND


class Device:
    """A shoe, a station and a shuffler with a line that fails as it is told to."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = list(problems)
        self.tried = 0
        self.done: list[tuple[object, ...]] = []
        self.looks = 0

    async def _do(self, *what: object) -> None:
        await asyncio.sleep(0.002)
        self.tried += 1
        if self.problems:
            raise self.problems.pop(0)
        self.done.append(what)

    async def lock(self) -> None:
        await self._do("lock")

    async def open_gate(self) -> None:
        await self._do("open")

    async def arm(self, seat: int, buttons: ButtonMask, token: int, ttl_ms: int) -> None:
        await self._do("arm", seat, buttons, token)

    async def disarm(self, seat: int) -> None:
        await self._do("disarm", seat)

    async def lamps(self, seat: int, wish: LampSetting) -> None:
        await self._do("lamps", seat, wish)

    async def start(self, decks: int, profile: int = 0) -> None:
        await self._do("start", decks)

    def looked(self) -> None:
        self.looks += 1


class Fitted(NamedTuple):
    outlets: DeviceOutputs
    shoe: Device
    station: Device


@asynccontextmanager
async def fitted(_: Path, seats: tuple[int, ...] = ()) -> AsyncIterator[Fitted]:
    shoe, station = Device(), Device()
    outlets = DeviceOutputs(("SH-1", shoe), dict.fromkeys(seats, ("ST-1", station)))
    task = asyncio.create_task(outlets.run())
    try:
        yield Fitted(outlets, shoe, station)
        assert not task.done()
    finally:
        await stopped(task)


def shown(*effects: object, arms: ButtonTokens | None = None, stopped: str = "") -> TableDisplay:
    return TableDisplay(1, State(), effects, arms or ButtonTokens(), stopped=stopped)  # type: ignore[arg-type]


OPEN, LOCKED = shown(ShoeLock(False)), shown(ShoeLock(True))


@simulated_in(fitted)
async def test_the_last_wish_is_what_is_done(at: Fitted) -> None:
    await asyncio.sleep(0.01)
    for one in (OPEN, LOCKED, OPEN):
        at.outlets.show(one)
    await asyncio.sleep(0.01)
    at.outlets.show(OPEN)  # absolute: it is so already
    await asyncio.sleep(10)
    assert at.shoe.done == [("lock",), ("open",)]


@pytest.mark.parametrize("problem", [REFUSED, UNANSWERED, BUSY], ids=lambda one: type(one).__name__)
@simulated_in(fitted)
async def test_what_was_not_taken_is_wanted_again(at: Fitted, problem: Exception) -> None:
    at.shoe.problems = [problem, problem]
    at.outlets.show(OPEN)
    await asyncio.sleep(1.5 * RETRY_DELAY)
    assert (at.shoe.tried, at.shoe.done) == (2, [])
    await asyncio.sleep(RETRY_DELAY)
    assert at.shoe.done == [("open",)]
    await asyncio.sleep(10)
    assert at.shoe.tried == 3


@simulated_in(fitted)
async def test_a_device_that_is_away_is_asked_when_it_is_back(at: Fitted) -> None:
    at.shoe.problems = [AWAY, AWAY]
    at.outlets.show(OPEN)
    await asyncio.sleep(30)
    assert at.shoe.tried == 1  # nobody knocks at a door where nobody is
    at.outlets.back("ST-1")
    await asyncio.sleep(1)
    assert at.shoe.tried == 1
    at.outlets.back("SH-1")
    await asyncio.sleep(1)
    at.outlets.back("SH-1")
    await asyncio.sleep(1)
    assert at.shoe.done == [("open",)]


@simulated_in(fitted)
async def test_what_a_device_cannot_do_is_not_asked_again(at: Fitted) -> None:
    at.shoe.problems = [HOPELESS]
    await asyncio.sleep(30)
    assert at.shoe.tried == 1
    at.outlets.show(OPEN)
    await asyncio.sleep(1)
    assert at.shoe.done == [("open",)]


@simulated_in(fitted)
async def test_a_wish_that_changes_while_it_is_carried_out_is_carried_out_anew(at: Fitted) -> None:
    await asyncio.sleep(0.001)
    at.outlets.show(OPEN)  # the lock of the beginning is on its way
    await asyncio.sleep(1)
    assert at.shoe.done == [("lock",), ("open",)]
    async with asyncio.timeout(1):
        await at.outlets.settled(frozenset({"SH-1"}))


@simulated_in(fitted, (1, 2))
async def test_seats_are_armed_lit_and_disarmed(at: Fitted) -> None:
    await asyncio.sleep(0.1)
    assert at.station.done == [
        ("disarm", 1),
        ("disarm", 2),
        ("lamps", 1, LAMPS["dark"]),
        ("lamps", 2, LAMPS["dark"]),
    ]
    at.station.done.clear()
    arms = ButtonTokens(7, (SeatButtons(1, HIT, 8, ()),))
    at.outlets.show(shown(Stations((), ((1, "turn"),)), ShoeLock(True), arms=arms))
    await asyncio.sleep(0.1)
    assert at.station.done == [("arm", 1, HIT, 8), ("lamps", 1, LAMPS["turn"])]
    await asyncio.sleep(REARM_INTERVAL)
    assert ("arm", 1, HIT, 8) in at.station.done[2:]  # anew, before it runs out


@simulated_in(fitted, (1, 2))
async def test_when_nothing_can_be_recorded_all_is_safe(at: Fitted) -> None:
    arms = ButtonTokens(7, (SeatButtons(1, HIT, 8, ()),))
    at.outlets.show(shown(ShoeLock(False), Stations(), arms=arms))
    await asyncio.sleep(1)
    at.shoe.done.clear()
    at.station.done.clear()
    at.outlets.show(shown(ShoeLock(False), Stations(), arms=arms, stopped="no room"))
    await asyncio.sleep(1)
    assert at.shoe.done == [("lock",)]
    assert sorted(map(str, at.station.done)) == sorted(
        map(
            str,
            [
                *(("disarm", seat) for seat in (1, 2)),
                *(("lamps", seat, LAMPS["fault"]) for seat in (1, 2)),
            ],
        )
    )


# --- shuffles ---------------------------------------------------------------------------------


class Starting(NamedTuple):
    starter: ShuffleStarter
    shuffler: Device
    recorded: list[RecordEntry]


@asynccontextmanager
async def starting(_: Path, *problems: Exception) -> AsyncIterator[Starting]:
    recorded, shuffler = list[RecordEntry](), Device(*problems)
    made = ShuffleStarter(shuffler, recorded.append)
    task = asyncio.create_task(made.run())
    try:
        yield Starting(made, shuffler, recorded)
        assert not task.done()
    finally:
        await stopped(task)


@simulated_in(starting)
async def test_a_shuffle_is_started_once(at: Starting) -> None:
    at.starter.want(6)
    await asyncio.sleep(60)
    assert at.shuffler.done == [("start", 6)]
    assert (at.recorded, at.starter.problem) == ([], "")


@pytest.mark.parametrize(
    "problem",
    [
        AWAY,
        BUSY,
        CommandRefusedError(Start(6, 0, DeckKind.FULL_52), Refusal.NOT_NOW, 0),
        CommandUnansweredError(Start(6, 0, DeckKind.FULL_52), sent=False),
        ResultMissing(Start(6, 0, DeckKind.FULL_52), answered=False),
        InDoubt("someone has to look"),
    ],
    ids=lambda one: type(one).__name__,
)
@simulated_in(starting)
async def test_a_start_that_failed_is_people_s_to_ask_for_again(
    at: Starting, problem: Exception
) -> None:
    at.shuffler.problems = [problem]
    at.starter.want(6)
    await asyncio.sleep(600)
    assert at.shuffler.tried == 1
    assert "ask for the shuffle again" in at.starter.problem
    assert [one.kind for one in at.recorded] == ["fault"]
    at.starter.want_again(6)
    await asyncio.sleep(1)
    assert (at.shuffler.tried, at.shuffler.looks, at.shuffler.done) == (2, 1, [("start", 6)])
    assert at.starter.problem == ""


@simulated_in(starting, AWAY)
async def test_a_start_that_fails_when_it_is_over_is_in_nobody_s_way(at: Starting) -> None:
    """It stands in the record, and not before the dealer."""

    at.starter.want(6)
    await asyncio.sleep(0)
    at.starter.over()
    await asyncio.sleep(60)
    assert (at.shuffler.tried, [one.kind for one in at.recorded]) == (1, ["fault"])
    assert (at.starter.problem, at.starter.problem_now(shuffling=True)) == ("", "")
    assert at.starter.problem_now(shuffling=False) == NONE_RUNS
    at.starter.want(6)
    assert at.starter.problem_now(shuffling=False) == ""


@simulated_in(starting)
async def test_a_shuffle_that_is_not_wanted_any_more_is_not_started(at: Starting) -> None:
    at.starter.want(6)
    at.starter.over()
    await asyncio.sleep(60)
    assert at.shuffler.tried == 0


CARD_DUE: Final = (
    Step.BURNING,
    Step.RELIEF_BURN,
    Step.DEALING,
    Step.HAND_CARD,
    Step.DEALER_LATE,
    Step.DEALER_CARD,
)
RESTING: Final = 0.1
"""Seconds after which all that was wanted of the shoe is done."""


class Watch:
    """Looks at the shoe wherever a table stands."""

    def __init__(self, t: Told) -> None:
        self.t = t
        self.seen: set[Step] = set()

    async def look(self) -> None:
        t, s = self.t, self.t.state
        await asyncio.sleep(RESTING)
        if t.state != s:
            return  # it has gone on by itself
        due = s.step in CARD_DUE or (s.step is Step.WAGERING and bool(s.seats))
        beside = s.spare is not None
        assert t.locked == (not due or beside), t.words
        if t.locked and mechanism(t.room.shoe)["left"] and not s.lost:
            out = mechanism(t.room.shoe)["position"]
            with pytest.raises(CannotDo, match="locked"):
                t.room.shoe.request(Draw())
            assert mechanism(t.room.shoe)["position"] == out
        self.seen.add(s.step)

    async def to(self, *steps: Step) -> None:
        """Looks at each step on the way."""
        for _ in range(200):
            await self.look()
            if self.t.state.step in steps:
                return
            await self.t.robot.step()
        raise AssertionError(f"never came to {steps}")

    async def round(self) -> None:
        await self.to(Step.DEALING)
        await self.to(Step.WAGERING)


# A pair of eights for seat 1 against an ace; seat 2 has 11.
WHOLE: Final = ("8c", "6c", "As", "8h", "5d", "7h", "3d", "Td", "2c", "9d", "2d", "Tc", "4h")


async def a_round(t: Told, watch: Watch) -> None:
    """Insurance, a check, a split, a double, draws; with the shuffler at work before it."""
    await t.asked(t.shuffler, ShufflePace(shuffle_ms=1500))
    await watch.round()


async def held(t: Told, watch: Watch) -> None:
    """The floor, an unread card, a jam, a dealer who is relieved."""
    await in_turn(
        watch.to(Step.TURN),
        t.does("FloorCalled"),
        watch.look(),
        t.ruled(Odd.FLOOR_CALLED, Way.RESUME),
        watch.to(Step.HAND_CARD),
        t.draws(read="unreadable"),
        watch.look(),
        t.does("CardEntered", card=21),
        watch.look(),
        t.does("CardConfirmed", FLOOR),
        watch.look(),
        t.asked(t.room.shoe, SetJam(code="stuck")),
        t.comes_to(Step.DEVICE),
        watch.look(),
        t.asked(t.room.shoe, SetJam(code=None)),
        t.comes_to(Step.FELT),
        watch.to(Step.WAGERING),
        t.does("DealerRelieved", SECOND),
        watch.round(),
    )


async def beside(t: Told, watch: Watch) -> None:
    """A card that slipped out is the next one: none comes before it lies on its place."""
    await in_turn(
        watch.to(Step.TURN),
        t.forces(),
        watch.look(),
        watch.to(Step.HAND_CARD),
    )
    assert t.locked
    await watch.to(Step.WAGERING)


async def late(t: Told, watch: Watch) -> None:
    """The dealer's second card comes last."""
    await in_turn(
        t.to_deal(5),
        t.does("DealerCardMissed", which=2),
        watch.to(Step.WAGERING),
    )


NATURAL: Final = ("Ac", "9c", "8s", "Kh", "9h", "Td")


async def naturals(t: Told, watch: Watch) -> None:
    """A blackjack that may decline its pay."""
    await watch.to(Step.NATURALS)
    await watch.to(Step.WAGERING)


WALKS: Final = (
    (a_round, Setting(cards=WHOLE, plan={1: "insure split hit", 2: "double"})),
    (held, Setting()),
    (beside, Setting(cards=(*DEAL, "9d", "9h"))),
    (late, Setting(cards=("9c", "8c", "8s", "2h", "Kc", "9d", "Td"))),
    (
        naturals,
        Setting(cards=("Ac", "9c", "8s", "Kh", "9h", "Td"), options={"double.natural": True}),
    ),
)


def test_no_card_comes_where_none_is_due(tmp_path: Path) -> None:
    """At every step at which a table waits."""
    seen: set[Step] = set()

    async def walk(at: int) -> None:
        story, setting = WALKS[at]
        async with opened(tmp_path / str(at), setting) as t:
            watch = Watch(t)
            await watch.look()
            await story(t, watch)
            seen.update(watch.seen)

    for number in range(len(WALKS)):
        run(walk(number))
    assert set(WAITING) - seen == {Step.REFILL}  # see the_shoe_runs_out_in_a_round


@simulated
async def test_a_shoe_is_locked_before_the_table_is_served_and_after(tmp_path: Path) -> None:
    """Between two starts of the controller nobody lets a card out."""

    at = Setting()
    async with room(tmp_path, game_with("classic", {}), stations=False) as made:
        assert mechanism(made.shoe)["lock"] == "locked"
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await t.to_step(Step.DEALING)
            await until(lambda: not t.locked)
        assert mechanism(made.shoe)["lock"] == "locked"


class Stands:
    """A device that stands as it is told to."""

    def __init__(self, link: DeviceLink) -> None:
        self.state = LinkState.READY
        self.why = ""
        self.held: RingHeld | None = None
        self._link = link
        link.supervisor = self

    async def is_(self, state: LinkState, seconds: float) -> None:
        """From now on, and for so long."""
        self.state, self.why = state, "so it is told"
        self._link.check()
        await asyncio.sleep(seconds)


def shoe(one: Served) -> Stands:
    return Stands(one.table.devices.supervised[SHOE].link)


def lost(one: Served) -> list[str]:
    return [event.why for event in one.events() if isinstance(event, DeviceLost)]


@simulated_in(serving)
async def test_a_device_that_is_mended_has_its_moment_to_come_back(one: Served) -> None:
    """However long the record had no room, and whatever was before that."""
    await one.to_step(Step.TURN)
    stands = shoe(one)
    await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)
    one.room.book.refusing = RetryLater("record", "no room", "make room")
    await raised(TableStopped, one.table.act({"type": "CheckHole"}, DEALER))
    await stands.is_(LinkState.UNKEPT, 60)
    assert one.table.shown.stopped
    one.room.book.refusing = None
    await until(lambda: not one.table.shown.stopped, 40)
    await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)
    await stands.is_(LinkState.READY, 60)
    assert lost(one) == []
    await stands.is_(LinkState.LOST, LOST_AFTER + 0.5)
    assert lost(one) == ["lost: so it is told"]


@simulated_in(serving)
async def test_people_are_told_of_a_device_that_nothing_is_kept_of(one: Served) -> None:
    """The record takes all else, so nobody is told by that."""
    await one.to_step(Step.TURN)
    stands = shoe(one)
    await stands.is_(LinkState.UNKEPT, LOST_AFTER - 0.5)
    await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)  # tried again
    assert lost(one) == []
    await stands.is_(LinkState.UNKEPT, 1)
    assert lost(one) == ["unkept: so it is told"]
    assert one.at(Step.DEVICE)
    await stands.is_(LinkState.READY, 1)
    assert one.at(Step.FELT)
