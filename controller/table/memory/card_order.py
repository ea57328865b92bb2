"""Detects cards that come in the order of a new deck, from cards that already lie face up.

    cards = sequence_of(((1, 12), (2, 11), (4, 9), ...))   # positions in the shoe, and cards
    cards.then(5, 8).order                    # "a suit downwards"; None: as a shuffle leaves them

A well shuffled shoe has such runs by chance as well, so a run must be long to count: a card follows
another in a given way with a probability of at most `chance`, and there are fewer than
MAX_POSITIONS places where a run can begin. All orders together give a false alarm in less than one
of a million well shuffled shoes (FALSE_ALARMS). A run may include one or two unseen cards.

It uses neither a count nor any property of the cards that are still in the shoe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from controller.rules.cards import DECK, RANK, SUIT, Card

MAX_POSITIONS: Final = 8 * 52
MAX_GAP: Final = 3
"""Maximum distance in positions between two seen cards of a run."""

_T = TypeVar("_T")
Follows: TypeAlias = Callable[[Card, Card, int], bool]


class DeckOrder(Struct, frozen=True):
    """A way in which unshuffled cards follow each other."""

    name: str
    follows: Follows
    """Whether the second card follows the first at this distance in positions."""
    chance: float
    """Maximum probability that a card follows by chance: for the last card of a run, when the
    others of it have left a single deck."""
    run: int
    """Number of consecutive following cards that raises the alarm."""

    @property
    def false_alarms(self) -> float:
        """Maximum expected number of false alarms in a well shuffled shoe."""
        return float(MAX_POSITIONS * self.chance**self.run)


def _rises(one: Card, other: Card, gap: int) -> bool:
    return SUIT[one] == SUIT[other] and RANK[other] - RANK[one] == gap


def _falls(one: Card, other: Card, gap: int) -> bool:
    return SUIT[one] == SUIT[other] and RANK[one] - RANK[other] == gap


def _ranks_rise(one: Card, other: Card, gap: int) -> bool:
    return gap == 1 and (RANK[other] - RANK[one]) % 13 == 1


def _ranks_fall(one: Card, other: Card, gap: int) -> bool:
    return gap == 1 and (RANK[one] - RANK[other]) % 13 == 1


def _ranks_together(one: Card, other: Card, gap: int) -> bool:
    """Sorted by ranks: the same rank, or the next."""
    return gap == 1 and (RANK[other] - RANK[one]) % 13 in (0, 1)


def _ranks_together_down(one: Card, other: Card, gap: int) -> bool:
    return gap == 1 and (RANK[one] - RANK[other]) % 13 in (0, 1)


def _suits_together(one: Card, other: Card, gap: int) -> bool:
    return gap == 1 and SUIT[one] == SUIT[other]


DECK_ORDERS: Final = (
    DeckOrder("a suit upwards", _rises, 1 / 46, 6),
    DeckOrder("a suit downwards", _falls, 1 / 46, 6),
    DeckOrder("ranks upwards", _ranks_rise, 4 / 43, 9),
    DeckOrder("ranks downwards", _ranks_fall, 4 / 43, 9),
    DeckOrder("ranks together, upwards", _ranks_together, 7 / 39, 13),
    DeckOrder("ranks together, downwards", _ranks_together_down, 7 / 39, 13),
    DeckOrder("suits together", _suits_together, 1 / 4, 17),
)

NEIGHBOURS: Final = 0.04
"""Probability that a card is the next or the previous of its suit: at most 24 in 13 x 51."""
RARE: Final = 1e-10
"""Maximum probability of a false alarm from neighbours at each of MAX_POSITIONS cards."""


def _too_many(neighbours: int, of: int) -> bool:
    """Whether so many neighbours are less likely than RARE by chance, by Chernoff's bound."""
    share = neighbours / of if of else 0.0
    if share <= NEIGHBOURS:
        return False
    distance = share * math.log(share / NEIGHBOURS)
    if share < 1:
        distance += (1 - share) * math.log((1 - share) / (1 - NEIGHBOURS))
    return math.exp(-of * distance) < RARE


FALSE_ALARMS: Final = sum(order.false_alarms for order in DECK_ORDERS) + MAX_POSITIONS * RARE
"""Maximum share of well shuffled shoes with a false alarm."""


class CardSequence(Struct, frozen=True):
    """The state of the detection after a number of cards, so that each new card costs O(1)."""

    place: int = 0
    """Position of the last card; 0: no card yet."""
    card: Card = -1
    runs: tuple[tuple[int, int], ...] = ()
    """The current runs: index of the order, and number of following cards."""
    pairs: int = 0
    neighbours: int = 0
    run: str = ""
    """The order of the first run that was long enough; empty if none was."""

    def then(self, place: int, card: Card) -> CardSequence:
        """With one more card, at a position behind all others."""
        if not self.place:
            return CardSequence(place, card)
        gap, pair = place - self.place, self.card * len(DECK) + card
        close = gap == 1
        former = dict(self.runs)
        follows = _FOLLOWS[gap][pair] if gap <= MAX_GAP else ()
        runs = tuple((at, former.get(at, 0) + 1) for at in follows)
        longest = next((DECK_ORDERS[at].name for at, run in runs if run >= DECK_ORDERS[at].run), "")
        return CardSequence(
            place,
            card,
            runs,
            self.pairs + close,
            self.neighbours + (close and _NEXT[pair]),
            self.run or longest,
        )

    @property
    def order(self) -> str | None:
        """The detected order as text, or None."""
        return self.run or (
            "too many neighbours" if _too_many(self.neighbours, self.pairs) else None
        )


NO_CARDS: Final = CardSequence()


def sequence_of(faces: Iterable[tuple[int, Card]]) -> CardSequence:
    """Returns the detection state after these cards, sorted by position."""
    found = NO_CARDS
    for place, card in sorted(dict(faces).items()):
        found = found.then(place, card)
    return found


def _pairs(of: Callable[[Card, Card], _T]) -> tuple[_T, ...]:
    """`of` for each pair of cards, at the index 52 * first + second."""
    return tuple(of(one, other) for one in DECK for other in DECK)


def _follow(one: Card, other: Card, gap: int) -> tuple[int, ...]:
    """Indices of the orders in which the second card follows the first."""
    return tuple(at for at, order in enumerate(DECK_ORDERS) if order.follows(one, other, gap))


# Tables, because they are used for each card before it is shown.
_NEXT: Final = _pairs(lambda one, other: _rises(one, other, 1) or _falls(one, other, 1))
_FOLLOWS: Final = tuple(_pairs(partial(_follow, gap=gap)) for gap in range(MAX_GAP + 1))
"""By gap and pair."""
