"""Exact figures: fractions, for cards from a freshly shuffled shoe.

The figures of the `stand` policy come from every sequence of cards, enumerated through the rows.
Equal cards are enumerated once: for each value, and for diamonds if they pay, one card represents
all that are left, and the weight of the round is multiplied by their number. Rounds that reach the
same state with the same cards in a different order are merged. Weights are integers, the number of
ways to deal so far; nothing is rounded.

The hole card is drawn when it is revealed. Until then it is any card that is left, or any that
agrees with the result of the check.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from controller.games import DEALER, SHOE, player, wagering
from controller.procedure.model.effects import Settled
from controller.procedure.model.events import (
    CardDrawn,
    Decline,
    Event,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
    InsuranceClosed,
    PayTaken,
    Stand,
    WagerPlaced,
)
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import ACE, DECK, DIAMONDS, SUIT, VALUE, Card
from controller.rules.hands import is_blackjack, plus
from controller.rules.money import Odds
from controller.rules.options import Options
from controller.rules.payouts import dealer_draws
from controller.sim.play import RoundStuck, Stepper, pay, stakes_for, voice

SEAT: Final = 1

_Deck: TypeAlias = tuple[tuple[Card, ...], ...]
"""The cards that are left, in piles of equivalent cards."""


class Exact(Struct, frozen=True):
    """Figures of one main wager."""

    ev: Fraction
    outcomes: dict[str, Fraction]


class _Point(Struct):
    """A state that waits for a card, the cards left, and the number of ways to reach it."""

    state: State
    deck: _Deck
    ways: int


class _Leaf(Struct, frozen=True):
    """A settled wager. `share`: the fraction of the remaining hole cards that lead to it."""

    outcome: str
    net: int
    share: Fraction | None
    """None: all of them."""


class _Rounds:
    """Enumerates all rounds of one seat that always stands."""

    def __init__(self, table: Stepper) -> None:
        self._table = table
        self._suited = table.game.options.blackjack.pays_diamonds is not None
        self._stake = stakes_for(table.game, side=False).main
        player_of_seat = voice(table.game, SEAT)
        self._events = {
            Step.DEALING: HoleDealt(SHOE, "enumerated"),
            Step.TURN: Stand(player_of_seat, SEAT, 0),
            Step.INSURANCE: Decline(player_of_seat, SEAT),
            Step.INSURANCE_CLOSE: InsuranceClosed(DEALER),
            Step.NATURALS: PayTaken(player_of_seat, SEAT),
        }
        self._likely: dict[tuple[str, int], Fraction] = defaultdict(Fraction)
        self._settled: dict[tuple[str, int], int] = defaultdict(int)
        """The number of ways of this level to settle the wager, by outcome and net."""

    def enumerate(self) -> Exact:
        wager = WagerPlaced(player(SEAT), SEAT, "main", self._stake)
        deck = _piles([DECK] * self._table.game.decks, suited=self._suited)
        level = [_Point(self._step(wagering(), wager).state, deck, 1)]
        left, ways = sum(map(len, deck)), 1
        while level:
            ways *= left
            left -= 1
            deeper: dict[object, _Point] = {}
            for point in level:
                self._deal(point, ways, deeper)
            level = list(deeper.values())
            for end, settled in self._settled.items():
                self._likely[end] += Fraction(settled, ways)
            self._settled.clear()
        return self._figures()

    def _figures(self) -> Exact:
        if sum(self._likely.values()) != 1:
            raise RoundStuck("the rounds do not add up to one")
        outcomes: dict[str, Fraction] = defaultdict(Fraction)
        for (outcome, _), likely in self._likely.items():
            outcomes[outcome] += likely
        net = sum((likely * net for (_, net), likely in self._likely.items()), Fraction())
        return Exact(net / self._stake, dict(outcomes))

    def _deal(self, point: _Point, ways: int, deeper: dict[object, _Point]) -> None:
        """Deal every possible next card and continue until another card is needed."""
        for card, cards, left in _draws(point.state, point.deck):
            weight = point.ways * cards
            for end in self._onward(
                self._step(point.state, _arrival(point.state, card)).state, left
            ):
                if isinstance(end, _Leaf):
                    if end.share is None:
                        self._settled[end.outcome, end.net] += weight
                    else:
                        self._likely[end.outcome, end.net] += Fraction(weight, ways) * end.share
                    continue
                key = self._key(end)
                known = deeper.get(key)
                if known is not None:
                    known.ways += weight
                    continue
                # The remaining cards go to the dealer only, and their suits do not matter.
                deck = _piles(left, suited=False) if end.step is Step.REVEAL else left
                deeper[key] = _Point(end, deck, weight)

    def _onward(self, s: State, deck: _Deck) -> Iterator[State | _Leaf]:
        """Yields the next state that needs a card, one for each result of a check, or a leaf."""
        while not _awaits_card(s):
            if s.step is Step.CHECK:
                for found in (False, True):
                    if _share(s.up, deck, found):
                        yield from self._onward(self._step(s, HoleChecked(SHOE, found)).state, deck)
                return
            answer = self._step(s, self._next(s))
            s = answer.state
            for fact in answer.effects:
                if type(fact) is Settled:
                    hidden = bool(s.hole) and s.checked is not None
                    share = _share(s.up, deck, s.checked is True) if hidden else None
                    yield _Leaf(fact.outcome, fact.returned - fact.stake, share)
                    return
        yield s

    def _step(self, s: State, e: Event) -> Decision:
        answer = self._table.step(s, e)
        if isinstance(answer, Refused):
            raise RoundStuck(f"{type(e).__name__} at {s.step.value}: {answer.why}")
        return answer

    def _next(self, s: State) -> Event:
        """Returns the event that follows without a relevant card."""
        event = pay(s) if s.step is Step.PAYING else self._events.get(s.step)
        if event is None:
            raise RoundStuck(f"nobody knows how to go on from {s.step.value}")
        return event

    def _key(self, s: State) -> object:
        """Returns the state's key for merging: everything but the order of the cards."""
        hand = s.hands[0]
        cards = tuple(sorted(_pile_of(card, suited=self._suited) for card in hand.cards))
        suited = self._suited and s.step is Step.DEALING
        dealer = tuple(sorted(_pile_of(card, suited=suited) for card in s.dealer))
        # Three cards are no blackjack, whichever of them was the first.
        first = None if len(dealer) > 2 else (s.up, s.checked)
        return s.step, s.dealt, cards, hand.natural, hand.done, dealer, first


def _pile_of(card: Card, *, suited: bool) -> int:
    """Returns the pile of the cards that are equivalent to this one."""
    value = VALUE[card]
    apart = suited and SUIT[card] == DIAMONDS and value in (ACE, 10)
    return value + 10 if apart else value


def _piles(deck: Iterable[Iterable[Card]], *, suited: bool) -> _Deck:
    piles: dict[int, list[Card]] = defaultdict(list)
    for card in chain.from_iterable(deck):
        piles[_pile_of(card, suited=suited)].append(card)
    return tuple(tuple(pile) for pile in piles.values())


def _awaits_card(s: State) -> bool:
    if s.step is Step.DEALING:
        return s.places[s.dealt].kind != "hole"
    return s.step in (Step.WAGERING, Step.REVEAL, Step.DEALER_CARD)


def _arrival(s: State, card: Card) -> Event:
    if s.step is Step.REVEAL:
        return HoleRevealed(SHOE, card, "enumerated")
    return CardDrawn(SHOE, card)


def _draws(s: State, deck: _Deck) -> Iterator[tuple[Card, int, _Deck]]:
    """Yields one card of each possible pile, the number that it represents, and the cards left."""
    for index, pile in enumerate(deck):
        if pile and _may_come(s, pile[-1]):
            yield pile[-1], len(pile), (*deck[:index], pile[:-1], *deck[index + 1 :])


def _may_come(s: State, card: Card) -> bool:
    if s.step is not Step.REVEAL or s.checked is None:
        return True
    return is_blackjack(s.dealer[0], card) == s.checked


def _share(up: int, deck: _Deck, found: bool) -> Fraction:
    """Returns the fraction of hole cards that agree with the result of the check."""
    left = sum(map(len, deck))
    other = {ACE: 10, 10: ACE}.get(up)
    making = sum(len(pile) for pile in deck if pile and VALUE[pile[0]] == other)
    return Fraction(making if found else left - making, left)


def enumerate_stand(table: Stepper) -> Exact:
    """Returns the exact figures of a wager whose player always stands and never insures."""
    return _Rounds(table).enumerate()


# --- side bets and the dealer's hand: figures that need no rounds ------------------------------

Ends: TypeAlias = dict[tuple[int, int], Fraction]
"""Total and number of cards of the dealer's hand -> probability."""

_Drawing: TypeAlias = tuple[int, bool, tuple[int, ...]]
"""A hand that still draws: its total, whether that is soft, and the cards left by value."""


def blackjack_dealt(decks: int) -> Fraction:
    """Returns the probability of a blackjack."""
    return Fraction(2 * 4 * decks * 16 * decks, 52 * decks * (52 * decks - 1))


def diamonds_dealt(decks: int) -> Fraction:
    """Returns the probability of a blackjack in diamonds."""
    return Fraction(2 * decks * 4 * decks, 52 * decks * (52 * decks - 1))


def diamond_return(decks: int, pays: int) -> Fraction:
    """Returns the expected result of a diamond bet of one."""
    return (pays + 1) * diamonds_dealt(decks) - 1


def insurance_return(decks: int, pays: Odds) -> Fraction:
    """Returns the expected result of an insurance of one if only the dealer's ace is known."""
    ten = Fraction(16 * decks, 52 * decks - 1)
    return ten * Fraction(pays.pays, pays.on) - (1 - ten)


def dealer_ends(decks: int, options: Options) -> Ends:
    """Returns the distribution of the dealer's completed hands.

    Computed card by card: each level has the hands that still draw, weighted by the number of
    ways to draw them.
    """
    ends: Ends = defaultdict(Fraction)
    level: dict[_Drawing, int] = {(0, False, (4 * decks,) * 9 + (16 * decks,)): 1}
    ways = 1
    for count in range(1, 52 * decks + 1):
        ways *= 52 * decks + 1 - count
        deeper: dict[_Drawing, int] = defaultdict(int)
        for (total, soft, left), weight in level.items():
            for index, cards in enumerate(left):
                after = plus(total, soft, index)  # clubs: the card's number is its rank's
                if dealer_draws(options, after[0], soft=after[1]):
                    rest = (*left[:index], cards - 1, *left[index + 1 :])
                    deeper[*after, rest] += weight * cards
                else:
                    ends[after[0], count] += Fraction(weight * cards, ways)
        level = {hand: weight for hand, weight in deeper.items() if weight}
    return dict(ends)


def dealer_busts(ends: Ends) -> dict[int, Fraction]:
    """Returns the probability that the dealer busts, by number of cards."""
    busts: dict[int, Fraction] = defaultdict(Fraction)
    for (total, count), likely in ends.items():
        if total > 21 and likely:
            busts[count] += likely
    return dict(sorted(busts.items()))


def dealer_total(ends: Ends, wanted: int) -> Fraction:
    """Returns the probability of this total of the dealer."""
    return sum((likely for (total, _), likely in ends.items() if total == wanted), Fraction())


def buster_return(ends: Ends, pays: dict[int, int]) -> Fraction:
    """Returns the expected result of a Buster bet of one."""
    won = Fraction(-1)
    for count, likely in dealer_busts(ends).items():
        to_one = pays.get(min(count, max(pays)))
        won += 0 if to_one is None else likely * (to_one + 1)
    return won
