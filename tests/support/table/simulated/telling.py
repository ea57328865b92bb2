"""A table that is served in simulated time, told step by step: what people do, what is shown, what
comes out of the shoe, and what the record holds of it.

    async with opened(folder, Setting("mega", stations=True)) as t:
        await t.to_step(Step.TURN)
        t.shows("Seat 1 - hard 11 - hit, stand or double")

Irregularities are told as stories:

    @irregular(Odd.SEAT_MISSED, "seat_missed", default=(Way.DEAD_HAND,), strict=(...))
    async def a_seat_that_got_no_cards(t: Told, way: Way) -> None: ...

A story is told in each house, once for each way that the house leaves open. When it is over the
round is over, and its record verifies and holds what found it, the ruling and who ruled.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.model.effects import Effect, Prompt, Ruled, Settled
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import Step
from controller.procedure.prompts import MoneyFormat, say
from controller.rules.irregularities import FIXED, Irregularity, Way
from controller.table.intake import DeviceSettings
from controller.table.loop import RequestResult
from controller.table.memory import TableDisplay
from firmware_protocol.device import ButtonName, Draw, Press, ShufflePace
from hil.table.robots import PlayerChoice, Robot
from hil.table.robots.robot import Who, card_of, mechanism
from tests.support.asynchronous import in_turn
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import (
    DEALER,
    FLOOR,
    SECOND,
    AtTable,
    Room,
    Served,
    kept,
    ready,
    run,
    whole,
)

WAY_ON: Final = (
    " - goes on once nothing is wrong with it, or the floor and a second person accept its counters"
)
"""Of a device that is waited for."""
HOUSES: Final = ("default", "strict")
BURNED: Final = ("2c", "3c", "4c")
"""The first cards of a shoe go to the discard rack: one in the default house, three in the strict
one."""
DEAL: Final = ("9c", "8c", "8s", "2h", "Kc", "Td")
"""Seat 1 has 11, seat 2 has 18, the dealer 18 with an 8 up: nothing is checked."""
CARDS: Final = (*DEAL, "9d", "3d", "5s")
OVER: Final = (Step.WAGERING, Step.SHUFFLE_NEEDED, Step.CLOSED)
BOTH: Final = ((1, "main", 1000), (2, "main", 1000))

E = TypeVar("E", bound=Effect)


class Choosing:
    """Players with ten dollars each, who do what a story says and stand otherwise."""

    def __init__(self, wagers: Iterable[tuple[int, str, int]], plan: Mapping[int, str]) -> None:
        """`plan`: what each seat wants, one word after the other."""
        self.bets = list(wagers)
        self._plan = {seat: words.split() for seat, words in plan.items()}

    def wagers(self) -> list[tuple[int, str, int]]:
        return list(self.bets)

    def wants(self, seat: int, words: str) -> None:
        self._plan[seat] = words.split()

    def choose(self, prompt: Prompt) -> PlayerChoice:
        wanted = self._plan.get(prompt.seat, [])
        if wanted and wanted[0] in prompt.choices:
            return PlayerChoice(wanted.pop(0))
        for choice in ("take_pay", "decline"):
            if choice in prompt.choices:
                return PlayerChoice(choice)
        return PlayerChoice("stand")


class Declaring(AtTable):
    """A dealer who declares each payment, where the house wants that."""

    async def act(self, name: str, fields: Mapping[str, Any], who: Who) -> Refused | None:
        prompt = self.shown.prompt
        if name == "Paid" and prompt is not None:
            fields = {"amount": prompt.amount, **fields}
        return await super().act(name, fields, who)


class Told(Served):
    """A table at which something goes wrong."""

    @property
    def house(self) -> str:
        return self.room.game.jurisdiction.name

    @property
    def players(self) -> Choosing:
        assert isinstance(self.robot.players, Choosing)
        return self.robot.players

    @property
    def shown(self) -> TableDisplay:
        return self.table.shown

    @property
    def prompt(self) -> Prompt:
        prompt = self.table.shown.prompt
        assert prompt is not None
        return prompt

    @property
    def words(self) -> str:
        """What the dealer's screen says now."""
        prompt, hands = self.prompt, self.state.hands
        several = sum(hand.seat == prompt.seat for hand in hands) > 1
        return say(prompt, MoneyFormat(), several=several)

    async def shows(self, words: str = "", **houses: str) -> None:
        """These words, or those of this house."""
        words = houses.get(self.house, words)
        assert self.words == words, f"{self.words!r} is shown, not {words!r}"

    @property
    def locked(self) -> bool:
        return bool(mechanism(self.room.shoe)["lock"] == "locked")

    # --- what people do -----------------------------------------------------------------------

    async def does(
        self, name: str, actor: Actor = DEALER, second: Actor | None = None, **fields: Any
    ) -> Decision:
        """Taken, and recorded with its people."""
        event, answer = await self._answer(name, actor, second, fields)
        assert isinstance(answer, Decision), answer
        assert (event.actor, getattr(event, "second", None)) == (actor, second)
        assert event in [one.event for one in self.made()]
        return answer

    async def refuses(
        self, name: str, actor: Actor = DEALER, second: Actor | None = None, **fields: Any
    ) -> str:
        """Refused, nothing has changed, and the record says why: the refusal's name."""
        before = self.state
        _, answer = await self._answer(name, actor, second, fields)
        assert isinstance(answer, Refused), answer
        assert self.state == before
        recorded = self.data("refusal")[-1]
        assert (recorded["id"], recorded["why"]) == (answer.id, answer.why)
        assert self.room.records("refusal")[-1].by.name == actor.name
        return answer.id

    async def refused(
        self,
        refusal: str,
        name: str,
        actor: Actor = DEALER,
        second: Actor | None = None,
        **fields: Any,
    ) -> None:
        """Refused by this name."""
        assert await self.refuses(name, actor, second, **fields) == refusal

    async def reveals(self) -> None:
        """The dealer turns the hole card over, whatever comes of it."""
        await self.table.act({"type": "RevealHole"}, DEALER)

    async def _answer(
        self, name: str, actor: Actor, second: Actor | None, fields: Mapping[str, Any]
    ) -> tuple[Event, Decision | Refused]:
        done: RequestResult = await self.table.act({"type": name, **fields}, actor, second=second)
        return done.answered[0].event, done.answered[0].answer

    async def ruled(self, what: Irregularity, way: Way) -> None:
        """The way on: at once where the house says so, else as the floor rules by the book."""
        game = self.room.game
        two = game.needs_two(what, way)
        if not self.at(Step.HELD):
            assert game.jurisdiction.ruling(what).way is way
            return
        assert (self.prompt.to, self.prompt.why) == ("floor", what.value)
        assert way.value in self.prompt.choices
        await until(lambda: self.locked)
        assert await self.refuses("FloorRuled", DEALER, SECOND, way=way.value) == "not_theirs"
        if two:
            assert self.words.endswith("bring a second person")
            assert await self.refuses("FloorRuled", FLOOR, way=way.value) == "floor_rules"
            same = Actor("surveillance", FLOOR.name)
            assert await self.refuses("FloorRuled", FLOOR, same, way=way.value) == "floor_rules"
        await self.does("FloorRuled", FLOOR, SECOND if two else None, way=way.value)

    # --- what stands before the players -------------------------------------------------------

    def armed(self, seat: int) -> list[str]:
        """The buttons of a seat that count now."""
        assert self.room.station is not None
        return list(mechanism(self.room.station)["seats"][str(seat)]["armed"])

    async def lit(self, seat: int, button: str) -> bool:
        """Whether a button of the seat lights up, soon."""
        try:
            await until(lambda: button in self.armed(seat), 0.2)
        except TimeoutError:
            return False
        return True

    async def presses(self, seat: int, button: ButtonName) -> None:
        """Somebody presses a button that is lit, and that is heard of."""
        assert await self.lit(seat, button)
        assert self.room.station is not None
        seats = self.room.station
        await until(lambda: button not in mechanism(seats)["seats"][str(seat)]["down"])
        known = len(self.pressed())
        self.room.station.request(Press(seat=seat, button=button))
        await until(lambda: len(self.pressed()) > known)

    def pressed(self) -> list[dict[str, Any]]:
        """Of each press that was told what the record has of it."""
        return self.data("device", "ButtonPressed")

    # --- what comes out of the shoe -----------------------------------------------------------

    async def draws(self, **draw: Any) -> None:
        """Somebody pulls a card as soon as the shoe lets one out; it is heard of."""
        await until(lambda: not self.locked)
        if self.at(Step.WAGERING):
            self.robot.pending_wagers = None  # all of them lie there
        await self._pulls(Draw(**draw))

    async def forces(self, **draw: Any) -> None:
        """A card is pulled out of a shoe that is locked."""
        await until(lambda: self.locked)
        await self._pulls(Draw(force=True, **draw))

    async def _pulls(self, draw: Draw) -> None:
        known = self.table.table.now.memory.last
        self.room.shoe.request(draw)
        await until(lambda: self.table.table.now.memory.last > known)

    @property
    def out(self) -> str:
        """The card that came out last."""
        return str(mechanism(self.room.shoe)["out"][-1])

    # --- on to somewhere ----------------------------------------------------------------------

    async def to_deal(self, dealt: int) -> None:
        """So many cards of the deal lie on the felt."""
        await self.to(lambda s: s.step is Step.DEALING and s.dealt == dealt)

    async def to_card(self, seat: int) -> None:
        """The seat in turn has asked for a card."""
        await self.to(lambda s: s.step is Step.HAND_CARD and s.hands[s.turn].seat == seat)

    async def ends(self, nets: Mapping[int, int]) -> None:
        """The round is over, and the seats have won or lost this."""
        await self.to_end()
        await self.won(nets)

    # --- what the record holds ----------------------------------------------------------------

    async def won(self, nets: Mapping[int, int]) -> None:
        assert self.nets() == nets

    async def noted(self, *facts: Effect) -> None:
        """These are the last ones of their kind."""
        assert self.facts(type(facts[0]))[-len(facts) :] == list(facts)

    def made(self) -> list[DecisionData]:
        return [decode_decision(record) for record in self.room.records("decision")]

    def facts(self, kind: type[E]) -> list[E]:
        return [one for made in self.made() for one in made.effects if isinstance(one, kind)]

    def names(self) -> list[str]:
        """What was decided, in order."""
        return [type(made.event).__name__ for made in self.made()]

    def nets(self) -> dict[int, int]:
        """What each seat won or lost in the last round that was settled."""
        settled = self.facts(Settled)
        net: dict[int, int] = {}
        for one in settled:
            if one.round == settled[-1].round:
                net[one.seat] = net.get(one.seat, 0) + one.returned - one.stake
        return dict(sorted(net.items()))


async def entered(t: Told, name: str) -> None:
    """The dealer reads the card from the felt, the floor looks too."""
    await in_turn(
        t.refused("no_card_to_confirm", "CardConfirmed", FLOOR),
        t.refused("not_theirs", "CardEntered", FLOOR, card=card_of(name)),
        t.does("CardEntered", card=card_of("Ks")),
    )
    assert t.words.startswith("Floor: confirm the card that was entered - ")
    assert "king of spades" in t.words
    await in_turn(
        t.does("CardRejected", FLOOR),
        t.does("CardEntered", card=card_of(name)),
        t.refused("not_theirs", "CardConfirmed"),
        t.does("CardConfirmed", FLOOR),
    )


async def told_of(t: Told, what: Irregularity, detail: str) -> None:
    """Floor and surveillance are."""
    informed = [one for one in t.facts(Informed) if one.what == what.value]
    assert [one.who for one in informed[-2:]] == ["floor", "surveillance"]
    assert {one.detail for one in informed[-2:]} == {detail}


@asynccontextmanager
async def telling(
    made: Room,
    cards: tuple[str, ...],
    wagers: Iterable[tuple[int, str, int]],
    plan: Mapping[int, str],
) -> AsyncIterator[Told]:
    """A table in this room, with its dealer, its floor and its players."""
    if made.shuffler is not None and made.shuffler.stand.powered:
        made.shuffler.request(ShufflePace(shuffle_ms=20))
    top = (*BURNED[: made.game.options.burn.on_shuffle], *cards)
    players = Choosing(wagers, plan)
    async with made.serve() as table:
        await ready(table)
        robot = Robot(made, Declaring(table), players, cards=lambda: whole(made, top))
        yield Told(made, table, robot)


class Setting(NamedTuple):
    """The table of a story."""

    game: str = "classic"
    options: Mapping[str, object] = MappingProxyType({})
    cards: tuple[str, ...] = CARDS
    wagers: tuple[tuple[int, str, int], ...] = BOTH
    plan: Mapping[int, str] = MappingProxyType({1: "hit"})
    stations: bool = False
    house: DeviceSettings = DeviceSettings()


@asynccontextmanager
async def opened(
    folder: Path, /, at: Setting | None = None, house: str = "default"
) -> AsyncIterator[Told]:
    """A table in a room of its own; afterwards its record verifies."""
    at = at or Setting()
    game = game_with(at.game, at.options, house)
    async with (
        kept(folder, game, stations=at.stations, house=at.house) as made,
        telling(made, at.cards, at.wagers, at.plan) as t,
    ):
        yield t


# --- irregularities, as stories -------------------------------------------------------------------


OTHERWISE: Final = {
    (Irregularity.DEALER_RELIEVED, Way.BURN): {"way_relief_burn"},
    (Irregularity.DEVICE_LOST, Way.DEVICE_CHECK): {"way_device_check", "way_device_there"},
}
"""Rows of a way on that are not named like it."""

Story: TypeAlias = Callable[[Told, Way], Awaitable[None]]


# --- which stories there are ------------------------------------------------------------------


class Case(NamedTuple):
    """What a story shows."""

    name: str
    what: Irregularity
    rows: tuple[str, ...]
    """Rows and refusals that it shows in every way, without the step."""
    ways: Mapping[str, tuple[Way, ...]]
    """By house."""
    also: Mapping[Way, tuple[str, ...]] = MappingProxyType({})
    """Rows that it shows in one way only."""
    setting: Setting = Setting()
    nets: Mapping[int, int] | None = None
    """What the seats win in the end, unless the round is void; None: not compared."""
    story: Story | None = None
    """None: a test of its own."""


CASES: Final[list[Case]] = []
WON: Final = {1: 1000, 2: 0}
VOID: Final = {1: 0, 2: 0}
"""The nets of the two seats when the round is played, and when it is void."""
TWO: Final = " - bring a second person"


def irregular(
    what: Irregularity,
    *rows: str,
    ways: tuple[Way, ...] = (),
    default: tuple[Way, ...] = (),
    strict: tuple[Way, ...] = (),
    also: Mapping[Way, tuple[str, ...]] = MappingProxyType({}),
    nets: Mapping[int, int] | None = WON,
    **setting: Any,
) -> Callable[[Story], Story]:
    """Register a story. `ways`: those of each house; `default` and `strict`: those of that house
    only. `nets`: what the seats win in the end, unless the round is void. The other arguments are
    those of Setting."""

    def register(story: Story) -> Story:
        name = f"{story.__module__.rpartition('.')[2]}.{getattr(story, '__name__', '')}"
        by_house = {"default": ways or default, "strict": ways or strict}
        CASES.append(Case(name, what, rows, by_house, also, Setting(**setting), nets, story))
        return story

    return register


def tell(case: Case, house: str, way: Way, folder: Path) -> None:
    """Play a story to the end of its round, and verify its record."""
    assert case.story is not None
    story = case.story

    async def main() -> None:
        async with opened(folder, case.setting, house) as t:
            await story(t, way)
            await t.robot.play(lambda s: s.state.step in OVER and not s.state.seats)
            if case.nets is not None:
                assert t.nets() == (VOID if way in (Way.VOID, Way.DECKS_OUT) else case.nets)
        holds(t.room, case.what, (*case.rows, *case.also.get(way, ())), way)

    run(main())


_AT_STEP: Final = re.compile(rf"_at_({'|'.join(step.value for step in Step)})\Z")


def family(row: str) -> str:
    """A row that stands at each step for itself, by the name that all of them share."""
    if row.startswith("resume_"):
        return "resume"
    return _AT_STEP.sub("", row)


def holds(made: Room, what: Irregularity, rows: tuple[str, ...], way: Way) -> None:
    """The record says what was found, which way was gone and who has ruled it."""
    decided = [decode_decision(record) for record in made.records("decision")]
    refused = [msgspec.json.decode(record.data)["id"] for record in made.records("refusal")]
    fired = {family(row) for one in decided for row in one.rows}
    assert set(rows) <= fired | set(refused), set(rows) - fired
    if what in FIXED:
        return
    informed = [one for each in decided for one in each.effects if isinstance(one, Informed)]
    assert what.value in {one.what for one in informed}
    ways = OTHERWISE.get((what, way), {f"way_{way.value}"})
    gone = [one for one in decided if ways & set(one.rows)]
    at_once = [one for one in gone if "floor_rules" not in one.rows and set(rows) & _families(one)]
    second = SECOND.name if made.game.needs_two(what, way) else ""
    ruled = Ruled(what.value, way.value, FLOOR.name, second)
    by_floor = [one for one in gone if ruled in one.effects]
    assert bool(at_once) != bool(by_floor), (at_once, by_floor)


def _families(made: DecisionData) -> set[str]:
    return {family(row) for row in made.rows}
