"""A small table to tell a story to: who wagers what, which cards come, what is decided, who pays.

It plays the dealer's part truthfully and keeps what the procedure must not know: the faces of the
cards that lie face down. What is handed in is accepted unless the story says otherwise, and when a
round is over every chip that a player laid down must have been settled once.

Cards are told in the order in which they leave the shoe: "9C" face up, "(KH)" the hole card,
"*9C" and "(*KH)" the card that lies beside the shoe.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from controller.games import DEALER, FLOOR, SECOND, SHOE, player, wagering
from controller.procedure.engine import Procedure
from controller.procedure.model import events as e
from controller.procedure.model.effects import (
    Effect,
    Fact,
    Prompt,
    RoundOver,
    Ruled,
    Settled,
    ShoeLock,
    Shuffler,
    Stations,
    Tell,
    Told,
)
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.felt import top
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import Hold, Spare, State, Step
from controller.rules.cards import NAMES, Card, card_names, parse_card
from controller.rules.hands import is_blackjack
from controller.rules.irregularities import Irregularity, Way
from tests.support.procedure.random_games import game_with

HOUSES: Final = ("default", "strict")
OVER: Final = (Step.WAGERING, Step.SHUFFLE_NEEDED, Step.CLOSED)
_MAX_STEPS: Final = 300
_CARD_STEPS: Final = frozenset(
    {Step.WAGERING, Step.DEALING, Step.HAND_CARD, Step.DEALER_LATE, Step.DEALER_CARD}
)

E = TypeVar("E", bound=Effect)
P = ParamSpec("P")


def card(name: str) -> Card:
    return parse_card(name, "story")


def cards(names: str) -> tuple[Card, ...]:
    return tuple(card(name) for name in names.split())


@cache
def _procedure(game: str, house: str, options: str) -> Procedure:
    """`options` is JSON: one procedure serves every table of the same sheet and house."""
    return Procedure(game_with(game, json.loads(options), house))


class Table:
    """Options are named by their paths, two underscores for the dot: double__times=3."""

    def __init__(
        self,
        game: str = "classic",
        house: str = "default",
        *,
        start: State | None = None,
        **options: Any,
    ) -> None:
        paths = {path.replace("__", "."): value for path, value in options.items()}
        self.procedure = _procedure(game, house, json.dumps(paths))
        self.game = self.procedure.game
        self.state = wagering() if start is None else start
        self.effects: tuple[Effect, ...] = self.procedure.shows(self.state)
        self.facts: list[Fact] = []
        self.rows: tuple[str, ...] = ()
        self.laid: Counter[int] = Counter()
        """Chips that each seat has on the felt, told from what was handed in alone."""
        self._round: list[Settled] = []
        self._over: list[Settled] = []
        self._laid_then: Counter[int] = Counter()
        self._faces: dict[str, Card] = {}

    # Handing in

    def bring(self, event: Event) -> Decision | Refused:
        before = self.state
        answer = self.procedure.step(before, event)
        if isinstance(answer, Decision):
            self.state = answer.state
            self.effects = answer.effects
            self.rows = answer.rows
            self._note(before, event, answer)
        return answer

    def _note(self, before: State, event: Event, answer: Decision) -> None:
        match event:
            case e.WagerPlaced(seat=seat, bet=bet, amount=amount):
                self.laid[seat] += amount - _lies(before, seat, bet)
            case e.WagerRemoved(seat=seat, bet=bet):
                self.laid[seat] -= self.laid[seat] if bet == "main" else _lies(before, seat, bet)
            case e.Confirmed() if before.step is Step.SPLIT_CONFIRM:
                self.laid[before.hands[before.turn].seat] += before.hands[before.turn].wager
            case e.Confirmed() if before.step is Step.DOUBLE_CONFIRM:
                self.laid[before.hands[before.turn].seat] += before.asking
            case e.Confirmed():
                self.laid[before.seats[before.asked].number] += before.asking
            case e.ShuffleStarted() if not before.seats:
                self._count_up()  # wagers that went back before the first card
            case _:
                pass
        for fact in answer.effects:
            if isinstance(fact, Fact):
                self.facts.append(fact)
            if isinstance(fact, Settled):
                self._round.append(fact)
            if isinstance(fact, RoundOver):
                self._count_up()

    def _count_up(self) -> None:
        if self._round or self.laid:
            self._over, self._round = self._round, []
            self._laid_then, self.laid = self.laid, Counter()

    def do(self, *events: Event) -> Table:
        """Hands in what must be accepted."""
        for event in events:
            answer = self.bring(event)
            assert isinstance(answer, Decision), f"{event} at {self.state.step.value}: {answer}"
        return self

    def refuses(self, event: Event, refusal: str) -> Table:
        """The event meets this refusal."""
        assert self.refusal_of(event) == refusal
        return self

    def refusal_of(self, event: Event) -> str:
        """The id of the refusal that the event meets; nothing has changed."""
        before = self.state
        answer = self.bring(event)
        assert isinstance(answer, Refused), f"{event} at {before.step.value}: {answer}"
        assert answer.why
        assert self.state is before
        return answer.id

    # The story

    def bet(self, seat: int, main: int, **side: int) -> Table:
        self.do(e.WagerPlaced(player(seat), seat, "main", main))
        for bet, amount in side.items():
            self.do(e.WagerPlaced(player(seat), seat, bet, amount))  # type: ignore[arg-type]
        return self

    def bets(self, *mains: int) -> Table:
        """Main wagers of seat 1, 2 and so on."""
        for seat, main in enumerate(mains, 1):
            self.bet(seat, main)
        return self

    def sealed(self, name: str) -> str:
        """The commitment of a card that lies face down."""
        commitment = f"sealed-{len(self._faces)}"
        self._faces[commitment] = card(name)
        return commitment

    def deal(self, names: str) -> Table:
        for name in names.split():
            self._deal(name)
        return self

    def _deal(self, name: str) -> None:
        spare = "*" in name
        bare = name.strip("(*)")
        if not name.startswith("("):
            self.do(e.CardDrawn(SHOE, card(bare), spare))
            return
        waiting = self.state.spare
        known = spare and waiting is not None and waiting.commitment
        self.do(e.HoleDealt(SHOE, known or self.sealed(bare), spare))

    def slip(self, name: str) -> Table:
        """A card leaves the shoe when none is expected, face down."""
        return self.do(e.ErrorCardDrawn(SHOE, self.sealed(name)))

    def by(self, seat: int) -> Actor:
        """Who enters the decisions of a seat: its player, or the dealer who reads the signals."""
        return player(seat) if self.game.buttons else DEALER

    def hit(self, seat: int, names: str = "", hand: int = 0) -> Table:
        return self.do(e.Hit(self.by(seat), seat, hand)).deal(names)

    def stand(self, seat: int, hand: int = 0) -> Table:
        return self.do(e.Stand(self.by(seat), seat, hand))

    def double(self, seat: int, names: str = "", hand: int = 0, amount: int | None = None) -> Table:
        self.do(e.Double(self.by(seat), seat, hand, amount), e.Confirmed(DEALER))
        return self.deal(names)

    def split(self, seat: int, names: str = "", hand: int = 0) -> Table:
        self.do(e.Split(self.by(seat), seat, hand), e.Confirmed(DEALER))
        return self.deal(names)

    def surrender(self, seat: int, hand: int = 0) -> Table:
        return self.do(e.Surrender(self.by(seat), seat, hand))

    def insure(self, seat: int, amount: int) -> Table:
        return self.do(e.Insure(self.by(seat), seat, amount), e.Confirmed(DEALER))

    def decline(self, *seats: int) -> Table:
        return self.do(*(e.Decline(self.by(seat), seat) for seat in seats))

    def rule(self, way: Way, second: Actor | None = SECOND) -> Table:
        return self.do(e.FloorRuled(FLOOR, way, second))

    def void(self) -> Table:
        return self.do(e.RoundVoided(FLOOR, "a story's end", SECOND))

    def shuffle(self) -> Table:
        """Other decks, where those on the table are out of play; then shuffled, loaded, burned."""
        if self.prompt.tell is Tell.CHANGE_DECKS:
            self.do(e.DecksChanged(FLOOR, SECOND))
        loaded = e.ShoeLoaded(SHOE, self.game.decks * 52)
        return self.do(e.ShuffleStarted(SHOE), e.ShuffleDone(SHOE), loaded).until(Step.WAGERING)

    def ruled(self, what: Irregularity, way: Way) -> Table:
        """The way on: at once where the house says so, else as the floor rules by the book."""
        house = self.game.jurisdiction
        two = self.game.needs_two(what, way)
        if house.ruling(what).way is way and (not two or way is Way.ENTER_CARD):
            assert self.step is not Step.HELD, self.prompt
            return self
        self.held_for(what)
        assert way.value in self.prompt.choices
        self.refuses(e.FloorRuled(DEALER, way, SECOND), "not_theirs")
        if two:
            assert self.prompt.warn == "two_people"
            self.refuses(e.FloorRuled(FLOOR, way), "floor_rules")
            self.refuses(e.FloorRuled(FLOOR, way, Actor("surveillance", FLOOR.name)), "floor_rules")
        self.rule(way, SECOND if two else None)
        ruled = Ruled(what.value, way.value, FLOOR.name, SECOND.name if two else "")
        assert self.facts_of(Ruled)[-1] == ruled
        return self

    def enter(self, name: str) -> Table:
        """The dealer reads the card from the felt, the floor confirms it, and there it lies."""
        self.do(e.CardEntered(DEALER, card(name)), e.CardConfirmed(FLOOR))
        return self.deal("*" + name) if self.step in _CARD_STEPS else self

    def pay(self) -> Table:
        """The first payment due, by the book."""
        due = self.state.due[0]
        if due.floor and not self.state.approved:
            self.do(e.PaymentApproved(FLOOR))
        declared = due.moves if self.game.jurisdiction.declare_payments else None
        return self.do(e.Paid(DEALER, declared))

    # The dealer's part

    def until(self, *steps: Step, cards: str = "") -> Table:
        """The dealer goes on by the book, players stand, until one of these steps is reached."""
        left = cards.split()
        for _ in range(_MAX_STEPS):
            if self.state.step in steps:
                assert not left, f"{left} left over at {self.state.step.value}"
                return self
            self._continue(left)
        raise AssertionError(f"never came to {steps}: {self.state}")

    def _continue(self, left: list[str]) -> None:
        s = self.state
        if s.step in _CARD_STEPS:
            self._next_card(left)
            return
        match s.step:
            case Step.PAYING:
                self.pay()
            case Step.INSURANCE:
                self.decline(s.seats[s.asked].number)
            case Step.INSURANCE_CONFIRM | Step.DOUBLE_CONFIRM | Step.SPLIT_CONFIRM:
                self.do(e.Confirmed(DEALER))
            case Step.INSURANCE_CLOSE:
                self.do(e.InsuranceClosed(DEALER))
            case Step.NATURALS:
                seat = s.hands[s.turn].seat
                self.do(e.PayTaken(self.by(seat), seat))
            case Step.CHECK:
                self.do(e.HoleChecked(SHOE, is_blackjack(s.dealer[0], self.hole)))
            case Step.TURN:
                hand = s.hands[s.turn]
                self.stand(hand.seat, hand.number)
            case Step.REVEAL:
                self.do(e.HoleRevealed(SHOE, self.hole, "opening"))
            case Step.CLEARING:
                self.do(e.Cleared(DEALER))
            case Step.BURNING | Step.RELIEF_BURN:
                self.do(e.CardBurned(SHOE))
            case _:
                raise AssertionError(f"nobody goes on by himself at {s.step.value}: {s.holds}")

    def _next_card(self, left: list[str]) -> None:
        if not self.from_shoe:
            spare = self.state.spare or Spare()
            name = NAMES[self._faces[spare.commitment] if spare.card < 0 else spare.card]
            self._deal(f"(*{name})" if self.prompt.place == "hole" else f"*{name}")
            return
        assert left, f"no card is told for {self.state.step.value}"
        self._deal(left.pop(0))

    def finish(self, cards: str = "") -> dict[int, int]:
        """Plays the round to its end and tells what each seat won or lost."""
        return self.until(*OVER, cards=cards).nets()

    def ends(self, nets: dict[int, int] | None = None, cards: str = "") -> Table:
        """Plays the round to its end; each seat has won or lost this, where it is told."""
        return self.until(*OVER, cards=cards).has_ended(nets)

    def has_ended(self, nets: dict[int, int] | None = None) -> Table:
        """Every chip of the round was settled once; each seat has won or lost this, if told."""
        found = self.nets()
        assert nets in (None, found), f"{found}, not {nets}"
        return self

    def one_more_round(self) -> Table:
        """The table takes wagers again, and a round can be dealt."""
        return self.at(Step.WAGERING).bets(1000).deal("9C 7S KC (TD)").ends({1: 1000})

    def then(
        self, story: Callable[Concatenate[Table, P], Table], *args: P.args, **more: P.kwargs
    ) -> Table:
        """What this function tells of the table comes next."""
        return story(self, *args, **more)

    def nets(self) -> dict[int, int]:
        """What each seat won or lost in the round that is over; every chip was settled once."""
        settled: Counter[int] = Counter()
        net: Counter[int] = Counter()
        over, laid = (self._round, self.laid) if self._round else (self._over, self._laid_then)
        for fact in over:
            settled[fact.seat] += fact.stake
            net[fact.seat] += fact.returned - fact.stake
        assert +settled == +laid, f"settled {settled}, laid {laid}"
        return {seat: net[seat] for seat in sorted(settled)}

    # Looking

    @property
    def step(self) -> Step:
        return self.state.step

    @property
    def hole(self) -> Card:
        return self._faces[self.state.hole]

    @property
    def held(self) -> Hold:
        return top(self.state)

    @property
    def prompt(self) -> Prompt:
        return self.the(Prompt)

    @property
    def stations(self) -> Stations:
        return self.the(Stations)

    @property
    def from_shoe(self) -> bool:
        """The next card comes from the shoe, not from beside it."""
        return self.state.spare is None or self.prompt.tell is Tell.DEAL

    @property
    def locked(self) -> bool:
        return self.the(ShoeLock).locked

    def the(self, kind: type[E]) -> E:
        """The one effect of this kind that is shown."""
        found = [effect for effect in self.effects if isinstance(effect, kind)]
        assert len(found) == 1, f"{kind.__name__}: {found}"
        return found[0]

    def at(self, step: Step) -> Table:
        assert self.state.step is step, f"at {self.state.step.value}: {self.prompt}"
        return self

    def asks(self, tell: Tell, **fields: object) -> Table:
        """The prompt asks this."""
        return self.prompts(tell=tell, **fields)

    def prompts(self, **fields: object) -> Table:
        """The prompt has these fields."""
        return self._has(self.prompt, fields)

    def remembers(self, **fields: object) -> Table:
        """The state has these fields."""
        return self._has(self.state, fields)

    def _has(self, shown: Prompt | State, fields: dict[str, object]) -> Table:
        got = {name: getattr(shown, name) for name in fields}
        assert got == fields, f"{got}, not {fields}: {shown}"
        return self

    def unchanged(self, before: State) -> Table:
        """The state is the one that it was then."""
        assert self.state == before, f"{self.state}, not {before}"
        return self

    def offers(self, choice: str) -> Table:
        assert choice in self.prompt.choices, self.prompt
        return self

    def offers_last(self, choice: str) -> Table:
        assert self.prompt.choices[-1] == choice, self.prompt
        return self

    def offers_not(self, choice: str) -> Table:
        assert choice not in self.prompt.choices, self.prompt
        return self

    def shoe_locked(self) -> Table:
        assert self.locked, f"the shoe is open at {self.step.value}"
        return self

    def shoe_open(self) -> Table:
        assert not self.locked, f"the shoe is locked at {self.step.value}"
        return self

    def holds(self, names: str, turn: int = 0) -> Table:
        """The hand has these cards."""
        assert self.hand(turn) == names, f"{self.hand(turn)}, not {names}"
        return self

    def hold(self, *names: str) -> Table:
        """All the hands have these cards."""
        found = [self.hand(turn) for turn in range(len(self.state.hands))]
        assert found == [*names], f"{found}, not {names}"
        return self

    def wagers(self, amounts: dict[int, int], bet: str = "main") -> Table:
        """Each seat in play has this much on the bet."""
        found = {seat.number: seat.amount(bet) for seat in self.state.seats}
        assert found == amounts, f"{found}, not {amounts}"
        return self

    def stakes(self, *wagers: int) -> Table:
        """All the hands have these wagers."""
        found = [hand.wager for hand in self.state.hands]
        assert found == [*wagers], f"{found}, not {wagers}"
        return self

    def shuffler_works_on(self, decks: int) -> Table:
        assert self.the(Shuffler) == Shuffler(decks), self.the(Shuffler)
        return self

    def told(self, *who: str) -> Table:
        """All who were told of something so far."""
        found = self.facts_of(Told)
        assert [fact.who for fact in found] == [*who], f"{found}, not {who}"
        return self

    def noted_times(self, kind: type[Effect], count: int) -> Table:
        """There are that many facts of this kind so far."""
        assert len(self.facts_of(kind)) == count, self.facts_of(kind)
        return self

    def noted(self, fact: Effect, *more: Effect) -> Table:
        """These are all the facts of their kind so far."""
        found = self.facts_of(type(fact))
        assert found == [fact, *more], f"{found}, not {[fact, *more]}"
        return self

    def noted_no(self, kind: type[Effect]) -> Table:
        assert not self.facts_of(kind), self.facts_of(kind)
        return self

    def noted_last(self, fact: Effect) -> Table:
        """This is the latest fact of its kind."""
        found = self.facts_of(type(fact))[-1:]
        assert found == [fact], f"{found}, not {fact}"
        return self

    def held_for(self, what: Irregularity, *ways: Way) -> Table:
        """The table waits for the floor, which may rule these ways, where they are named."""
        self.at(Step.HELD)
        assert self.held.what is what
        self.asks(Tell.RULE, to="floor", why=what.value)
        assert not ways or set(self.prompt.choices) == {way.value for way in ways}
        return self.shoe_locked()

    def facts_of(self, kind: type[E]) -> list[E]:
        """Every fact of this kind so far."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def hand(self, turn: int = 0) -> str:
        """A hand's cards by name."""
        return " ".join(card_names(self.state.hands[turn].cards))


def _lies(s: State, seat: int, bet: str) -> int:
    for each in s.seats:
        if each.number == seat:
            amount: int = each.amount(bet)
            return amount
    return 0
