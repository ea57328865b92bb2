"""Rounds at random, legal and illegal events mixed, things going wrong, the hole card in a vault.

The table is truthful: it names the cards that came, answers the check by the card in its vault,
and knows a way out of every hold. Everything follows from the seed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, TypeAlias, cast

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.engine import Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import RoundOver
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.felt import discards, next_spare
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, Card
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER, is_blackjack
from controller.sim.play import Stepper
from tests.support.procedure.random_events import any_event, mishap


class Stuck(AssertionError):
    """The procedure does not take what a table would bring, and the round does not end."""


class Differs(AssertionError):
    """Two engines answered one event differently."""


class Both:
    """Two engines as one: each has its own state, and every answer is compared; also what the first
    one says before whether it would take the event."""

    def __init__(self, first: Procedure, second: Stepper) -> None:
        self.game = first.game
        self._first, self._second = first, second
        self._theirs = State()

    def step(self, s: State, event: Event, /) -> Decision | Refused:
        takes = self._first.takes(s, event)
        one = self._first.step(s, event)
        if takes is not isinstance(one, Decision):
            raise Differs(f"{event} at {s}\ntakes: {takes}\n step: {one}")
        two = self._second.step(self._theirs, event)
        if one != two or type(one) is not type(two):
            raise Differs(f"{event} at {s}\n first: {one}\nsecond: {two}")
        if isinstance(two, Decision):
            self._theirs = two.state
        return one


_AMOUNTS: Final = (1, 2, 3, 5, 7, 10, 15, 25, 33, 100)
_WEIGHTS: Final = {HIT: 6, STAND: 5, DOUBLE: 5, SPLIT: 18, SURRENDER: 1}


Watch: TypeAlias = Callable[[State, Event, Decision | Refused], None]
Wanted: TypeAlias = Mapping[Step, Sequence[type[Event]]]
"""Events to try more often where they are still to be seen taken."""


# Rounds of few ranks only, so that what is rare comes up often.
_LUCK: Final = (
    tuple(range(13)),
    tuple(range(13)),
    (7, 7, 7, 7, 1, 9),
    (9, 9, 10, 11, 12, 9),
    (0, 0, 0, 9, 10, 11, 12),
    (0, 0, 0, 0, 9, 4),
    (0, 1, 1, 2, 2, 3, 4, 5),
    (1, 1, 2, 3, 3, 9, 0),
    (5, 6, 9, 9, 11),
)
_TENS: Final = (9, 10, 11, 12)
_SEATS: Final = (1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4)
_SELDOM: Final = (
    Step.HELD,
    Step.CARD_ENTRY,
    Step.CARD_CONFIRM,
    Step.DEVICE,
    Step.FELT,
    Step.REFILL,
    Step.RELIEF_BURN,
    Step.DEALER_LATE,
    Step.NATURALS,
    Step.CLOSED,
    Step.SHUFFLING,
    Step.LOADING,
    Step.BURNING,
)
"""Steps that come seldom: more is tried on them."""
_MAX_EVENTS: Final = 4_000
_MAX_REFUSED: Final = 60
_FEWEST_CARDS: Final = 30


class RandomTable:
    """A table that plays at random, one event after the other."""

    def __init__(
        self,
        engine: Stepper,
        seed: int | str,
        *,
        illegal: float = 0.08,
        wrong: float = 0.03,
        wanted: Wanted | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.game = engine.game
        self._rng = Random(seed)
        self._random = self._rng.random
        self.engine = engine
        self.seed = seed
        self.state = State()
        self.rounds = self.events = self.refused = 0
        self.last: Decision | Refused | None = None
        self.rows: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.reserved: tuple[Card, ...] = ()
        """Cards that never come out of the shoe."""
        self._illegal, self._wrong = illegal, wrong
        self._wanted = wanted or {}
        self._watch = watch
        self._vault: dict[str, Card] = {}
        self._used = self._turned_down = 0
        self._plan: list[Event] | None = None
        self._ranks = _LUCK[0]
        self._calm = True
        self._acts: dict[Step, Callable[[State], Event]] = {
            Step.CLOSED: lambda s: events.TableOpened(FLOOR, 1000, SECOND),
            Step.SHUFFLE_NEEDED: self._to_shuffle,
            Step.SHUFFLING: lambda s: events.ShuffleDone(SHOE, 1 if self.chance(0.03) else 0),
            Step.LOADING: lambda s: events.ShoeLoaded(
                SHOE, self.game.decks * 52 - (1 if self.chance(0.03) else 0)
            ),
            Step.BURNING: lambda s: events.CardBurned(SHOE),
            Step.WAGERING: self._wager,
            Step.DEALING: self._card,
            Step.NATURALS: self._natural,
            Step.INSURANCE: self._insurance,
            Step.INSURANCE_CONFIRM: self._confirm,
            Step.INSURANCE_CLOSE: lambda s: events.InsuranceClosed(DEALER),
            Step.CHECK: lambda s: events.HoleChecked(
                SHOE, is_blackjack(s.dealer[0], self._hole(s))
            ),
            Step.TURN: self._turn,
            Step.DOUBLE_CONFIRM: self._confirm,
            Step.SPLIT_CONFIRM: self._confirm,
            Step.HAND_CARD: self._card,
            Step.DEALER_LATE: self._card,
            Step.REVEAL: self._reveal,
            Step.DEALER_CARD: self._card,
            Step.PAYING: self._pay,
            Step.CLEARING: lambda s: events.Cleared(DEALER),
            Step.HELD: self._rule,
            Step.CARD_ENTRY: self._enter,
            Step.CARD_CONFIRM: lambda s: (
                events.CardConfirmed(FLOOR) if self.chance(0.85) else events.CardRejected(FLOOR)
            ),
            Step.DEVICE: self._device,
            Step.FELT: lambda s: events.FeltConfirmed(DEALER),
            Step.REFILL: lambda s: events.ShoeLoaded(SHOE, discards(self.game, s)),
            Step.RELIEF_BURN: lambda s: events.CardBurned(SHOE),
        }

    # Playing

    def play(self, rounds: int) -> None:
        """Plays on until that many rounds are over."""
        for _ in range(rounds):
            self.play_round()

    def play_round(self) -> None:
        before = self.rounds
        for _ in range(_MAX_EVENTS):
            self.once()
            if self.rounds > before:
                return
        raise self._stuck(f"no end after {_MAX_EVENTS} events")

    def once(self) -> None:
        """One event, mostly what a table would do next."""
        s, draw = self.state, self._random()
        if s.step in _SELDOM:
            draw *= 0.3
        if draw < self._illegal:
            wanted = self._wanted.get(s.step)
            kind = wanted[self.below(len(wanted))] if wanted and self.chance(0.5) else None
            self.hand_in(any_event(self._rng, self.game, s, kind))
        elif draw < self._illegal + self._wrong and not self._calm:
            self.hand_in(mishap(self))
        elif isinstance(self.hand_in(self.proper()), Decision):
            self._turned_down = 0
        else:
            self._turned_down += 1
            if self._turned_down > _MAX_REFUSED:
                raise self._stuck(f"nothing goes on from {s.step.value}")

    def proper(self) -> Event:
        """What a table would do next."""
        s = self.state
        if s.lost and s.step is not Step.DEVICE and self.chance(0.2):
            return self._back(s.lost[0], agrees=True)
        return self._acts[s.step](s)

    def hand_in(self, event: Event) -> Decision | Refused:
        before = self.state
        answer = self.engine.step(before, event)
        self.events += 1
        self.last = answer
        if isinstance(answer, Decision):
            self.state = answer.state
            self.rows.update(answer.rows)
            self._follow(before, event, answer)
        else:
            self.refused += 1
            self.refusals[answer.id] += 1
        if self._watch is not None:
            self._watch(before, event, answer)
        return answer

    def _follow(self, before: State, event: Event, answer: Decision) -> None:
        """What an accepted event means for the cards, whoever made it up."""
        kind = type(event)
        if kind is events.CardDrawn:
            self._used += 1
        elif isinstance(event, (events.HoleDealt, events.ErrorCardDrawn)):
            self._used += 1
            if event.commitment not in self._vault:
                self._vault[event.commitment] = 0
                self._vault[event.commitment] = max(self.draw(), 0)
        elif kind is events.ShoeLoaded and answer.state.step is not Step.RULING:
            self._used = 0
        elif kind is events.Cleared and any(type(effect) is RoundOver for effect in answer.effects):
            self.rounds += 1
            self._plan = None

    def _stuck(self, why: str) -> Stuck:
        return Stuck(f"seed {self.seed!r}: {why}; {self.state}; {self.last}")

    # Chance and cards

    def a_seat(self) -> int:
        seats = self.state.seats
        return seats[self.below(len(seats))].number if seats and self.chance(0.9) else 1

    def draw(self) -> Card:
        """A card that the decks still hold, or -1."""
        ranks, hidden = self._ranks, self._out_of_sight()
        for _ in range(8):
            card = 13 * self.below(4) + ranks[self.below(len(ranks))]
            if self._is_left(card, hidden):
                return card
        left = [card for card in DECK if self._is_left(card, hidden)]
        return left[self.below(len(left))] if left else -1

    def _out_of_sight(self) -> tuple[Card, ...]:
        """The faces of cards that lie face down: seldom forgotten, so that a duplicate comes."""
        s, hidden = self.state, self.reserved
        if self.chance(0.03):
            return hidden
        if s.hole:
            hidden += (self._vault[s.hole],)
        if s.spare is not None and s.spare.card < 0:
            hidden += (self._vault[s.spare.commitment],)
        return hidden

    def _is_left(self, card: Card, hidden: tuple[Card, ...]) -> bool:
        seen = (self.state.seen >> 4 * card) & 15
        return seen + hidden.count(card) < self.game.decks

    def hide(self, card: Card) -> str:
        """A new commitment to the card, which tells nothing of it."""
        commitment = f"commitment-{len(self._vault)}"
        self._vault[commitment] = card
        return commitment

    def face(self, commitment: str) -> Card:
        return self._vault[commitment]

    def _hole(self, s: State) -> Card:
        if not s.hole:
            raise self._stuck(f"a hole card is asked for at {s.step.value}, and none lies there")
        return self._vault[s.hole]

    def _reveal(self, s: State) -> Event:
        card = self._hole(s)
        if s.read not in (-1, card):
            # It was read wrongly from the felt: it is read again.
            return events.CardUnreadable(SHOE, "misread")
        return events.HoleRevealed(SHOE, card, "opening")

    def _card(self, s: State) -> Event:
        if next_spare(s) is not None:
            return self._spare(s)
        if Step.REFILL in self._wanted and self.chance(0.01):
            return events.ShoeRanOut(SHOE)
        if s.step is Step.DEALING:
            place = s.places[s.dealt]
            if place.kind == "hole":
                return self._deal_hole(s)
            if place.kind == "up" and self.chance(0.45):
                return self._drawn((0,) if self.chance(0.6) else _TENS)
        return self._drawn(())

    def _drawn(self, ranks: tuple[int, ...]) -> Event:
        usual, self._ranks = self._ranks, ranks or self._ranks
        card = self.draw()
        self._ranks = usual
        return events.CardDrawn(SHOE, card) if card >= 0 else self._empty()

    def _empty(self) -> Event:
        if self.state.step is not Step.WAGERING:
            return events.ShoeRanOut(SHOE)
        if self.state.seats:
            return events.WagerRemoved(DEALER, self.state.seats[0].number, "main")
        return events.ShuffleCalled(DEALER)

    def _spare(self, s: State) -> Event:
        assert s.spare is not None
        if s.step is Step.DEALING and s.places[s.dealt].kind == "hole":
            return events.HoleDealt(SHOE, s.spare.commitment, True)
        card = s.spare.card
        return events.CardDrawn(SHOE, card if card >= 0 else self._vault[s.spare.commitment], True)

    def _deal_hole(self, s: State) -> Event:
        usual = self._ranks
        if s.up == 1 and self.chance(0.35):
            self._ranks = _TENS
        elif s.up == 10 and self.chance(0.25):
            self._ranks = (0,)
        card = self.draw()
        self._ranks = usual
        return events.HoleDealt(SHOE, self.hide(card)) if card >= 0 else events.ShoeRanOut(SHOE)

    # Before the round

    def _to_shuffle(self, s: State) -> Event:
        if s.shoe.decks_out:
            return events.DecksChanged(FLOOR, SECOND)
        if s.seats and self.chance(0.2):
            return events.WagerRemoved(DEALER, s.seats[0].number, "main")
        return events.ShuffleStarted(SHOE)

    def _wager(self, s: State) -> Event:
        if self._plan is None:
            self._plan = self._new_round(s)
        if self._plan:
            return self._plan.pop()
        if not s.seats:
            self._plan = None
            return events.WagerPlaced(DEALER, 1, "main", self._amount("main"))
        if s.spare is not None:
            return self._spare(s)
        return self._drawn(())

    def _new_round(self, s: State) -> list[Event]:
        """The wagers of a round, the last one first."""
        self._calm = self.chance(0.45)
        self._ranks = _LUCK[self.below(len(_LUCK))]
        full = self.game.decks * 52
        if full - self._used < _FEWEST_CARDS and self.chance(0.8):
            return [events.ShuffleCalled(DEALER)]
        count = 7 if self.chance(0.03) else _SEATS[self.below(len(_SEATS))]
        numbers = self._rng.sample(range(1, self.game.seats + 1), min(count, self.game.seats))
        plan: list[Event] = []
        for number in numbers:
            actor = player(number) if self.chance(0.5) else DEALER
            for bet in BETS:
                offered = bet in self.game.offered and self.chance(0.4)
                if bet == "main" or offered or self.chance(0.02):
                    plan.append(events.WagerPlaced(actor, number, bet, self._amount(bet)))
        if self.chance(0.05):
            plan.append(events.WagerRemoved(DEALER, numbers[0], BETS[self.below(len(BETS))]))
        if self.chance(0.12):
            plan.append(events.CutCardSeen(SHOE))
        if self.chance(0.01):
            plan.append(events.DealerRelieved(Actor("dealer", "dealer-2")))
        plan.reverse()
        return plan

    # Ways on

    def _rule(self, s: State) -> Event:
        ways = s.holds[-1].options
        return events.FloorRuled(FLOOR, ways[self.below(len(ways))], SECOND)

    def _enter(self, s: State) -> Event:
        card = self._hole(s) if s.holds[-1].back is Step.REVEAL else self.draw()
        return events.CardEntered(DEALER, max(card, 0))

    def _device(self, s: State) -> Event:
        if self.chance(0.3):
            return events.CountersAccepted(FLOOR, SECOND)
        return self._back(s.holds[-1].device, agrees=self.chance(0.7))

    def _back(self, device: str, *, agrees: bool) -> Event:
        return events.DeviceBack(Actor("device", device), cast(events.Device, device), agrees)

    # What players, dealer and floor decide, weighted so that what is rare comes up often

    def chance(self, of: float) -> bool:
        return self._random() < of

    def below(self, most: int) -> int:
        return int(self._random() * most)

    def _amount(self, bet: str) -> int:
        limit, unit = self.game.limits[bet], self.game.money.unit
        amount = _AMOUNTS[self.below(len(_AMOUNTS))] * (limit.step or unit)
        amount -= amount % unit
        if limit.min is not None:
            amount = max(amount, limit.min)
        return amount if limit.max is None else min(amount, limit.max)

    # Decisions

    def _decider(self, seat: int) -> Actor:
        by = self.game.options.decisions.by
        if by == "signals" or (by == "both" and self.chance(0.3)):
            return DEALER
        return player(seat)

    def _natural(self, s: State) -> Event:
        seat = s.hands[s.turn].seat
        return (events.PayTaken if self.chance(0.4) else events.PayDeclined)(
            self._decider(seat), seat
        )

    def _insurance(self, s: State) -> Event:
        seat = s.seats[s.asked]
        actor, unit = self._decider(seat.number), self.game.money.unit
        most = seat.main // 2 // unit
        waits = any(hand.seat == seat.number and hand.natural for hand in s.hands)
        if self.game.options.even_money.offered and self.chance(0.4) and waits:
            return events.EvenMoney(actor, seat.number)
        if most and self.chance(0.5):
            amount = most if self.chance(0.5) else self.below(most) + 1
            return events.Insure(actor, seat.number, amount * unit)
        return events.Decline(actor, seat.number)

    def _confirm(self, s: State) -> Event:
        if self.chance(0.85):
            return events.Confirmed(DEALER)
        asked = s.step is Step.INSURANCE_CONFIRM
        seat = s.seats[s.asked].number if asked else s.hands[s.turn].seat
        return events.Withdrawn(player(seat) if self.chance(0.5) else DEALER)

    def _turn(self, s: State) -> Event:
        hand = s.hands[s.turn]
        actor = self._decider(hand.seat)
        if s.spare is not None and s.spare.exposed and self.chance(0.3):
            return events.SpareRefused(actor, hand.seat, hand.number)
        bits = [bit for bit in _WEIGHTS if s.legal & bit]
        weights = [_WEIGHTS[bit] for bit in bits]
        if HIT in bits:
            weights[bits.index(HIT if hand.total < 15 else STAND)] *= 4
        bit = self._rng.choices(bits, weights)[0]
        if bit == DOUBLE:
            return events.Double(actor, hand.seat, hand.number, self._stake(hand.wager))
        if bit == SPLIT:
            amount = None if self.chance(0.7) else hand.wager
            return events.Split(actor, hand.seat, hand.number, amount)
        kind = {HIT: events.Hit, STAND: events.Stand, SURRENDER: events.Surrender}[bit]
        return kind(actor, hand.seat, hand.number)

    def _stake(self, wager: int) -> int | None:
        if self.chance(0.7):
            return None
        unit = self.game.money.unit
        if self.game.options.double.for_less and wager > unit:
            return (self.below(wager // unit - 1) + 1) * unit
        return wager

    # Payments

    def _pay(self, s: State) -> Event:
        due = s.due[0]
        if due.floor and not s.approved:
            return events.PaymentApproved(FLOOR)
        declared = self.game.jurisdiction.declare_payments
        alone = any(each.floor for each in s.due)
        if not declared and not alone and self.chance(0.6):
            return events.AllPaid(DEALER)
        return events.Paid(DEALER, due.moves if declared or self.chance(0.3) else None)


def fresh(game: Game) -> Game:
    """The same game, with nothing in its caches."""
    return Game(game.name, game.options, game.jurisdiction, game.title, game.seats, game.clauses)


def answers(
    game: Game, seed: str, rounds: int, wrong: float = 0.03
) -> list[tuple[State, Event, Decision | Refused]]:
    """All that a table of this game said in so many rounds."""
    said: list[tuple[State, Event, Decision | Refused]] = []
    RandomTable(Procedure(game), seed, wrong=wrong, watch=lambda *one: said.append(one)).play(
        rounds
    )
    return said
