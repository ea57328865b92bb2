"""Whether cards come as they lie in a new deck: looked for in cards that lie face up already.

    lies = lying(((1, 12), (2, 11), (4, 9), ...))   # positions in the shoe, and cards
    lies.then(5, 8).order                           # "a suit downwards"; None: as a shuffle leaves

A well shuffled shoe has such an order by chance as well, so each one has to be long: a card
follows another one in a given way with a chance of at most `chance`, and there are fewer than
PLACES places where so long a run can begin. All of them together ring for less than one in a
million well shuffled shoes (FALSE_ALARMS). A run goes over one or two cards that nobody has seen.

Nothing is asked of the cards that have not come, and none is counted.
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
"""Positions from one card that was seen to the next, within a run."""

_T = TypeVar("_T")
Follows: TypeAlias = Callable[[Card, Card, int], bool]


class DeckOrder(Struct, frozen=True):
    """A way in which unshuffled cards follow one another."""

    name: str
    follows: Follows
    """Of two cards, the second one so many positions after the first."""
    chance: float
    """Of a card that follows by chance, at most: that of the last one of such a run, of which the
    others have left a single deck."""
    run: int
    """So many cards that follow, one after the other, are no chance."""

    @property
    def false_alarms(self) -> float:
        """In a well shuffled shoe, at most: each place may begin a run."""
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
    """Sorted by ranks: the same one, or the next."""
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
"""The chance that a card is the next or the one before of its suit: at most 24 in 13 x 51."""
RARE: Final = 1e-10
"""So seldom more neighbours come by chance than ring; looked at after each of PLACES cards."""


def _too_many(neighbours: int, of: int) -> bool:
    """Chernoff's bound: so many of so many come by chance less than RARE."""
    share = neighbours / of if of else 0.0
    if share <= NEIGHBOURS:
        return False
    distance = share * math.log(share / NEIGHBOURS)
    if share < 1:
        distance += (1 - share) * math.log((1 - share) / (1 - NEIGHBOURS))
    return math.exp(-of * distance) < RARE


FALSE_ALARMS: Final = sum(order.false_alarms for order in DECK_ORDERS) + MAX_POSITIONS * RARE
"""In how many of well shuffled shoes somebody is called for nothing, at most."""


class CardSequence(Struct, frozen=True):
    """How cards lie, as far as it matters for those that lie behind them: whoever has it need not
    begin with the first card whenever one comes."""

    place: int = 0
    """Of the last card; 0: there is none."""
    card: Card = -1
    runs: tuple[tuple[int, int], ...] = ()
    """In which of the orders the last ones follow one another, and how many."""
    pairs: int = 0
    neighbours: int = 0
    run: str = ""
    """The first run that is no chance."""

    def then(self, place: int, card: Card) -> CardSequence:
        """With one more card, which lies behind them all."""
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
        """The one that they are in, in words; None in none."""
        return self.run or (
            "too many neighbours" if _too_many(self.neighbours, self.pairs) else None
        )


NO_CARDS: Final = CardSequence()


def sequence_of(faces: Iterable[tuple[int, Card]]) -> CardSequence:
    """These cards, by their positions."""
    found = NO_CARDS
    for place, card in sorted(dict(faces).items()):
        found = found.then(place, card)
    return found


def _pairs(of: Callable[[Card, Card], _T]) -> tuple[_T, ...]:
    """For every card and the one after it, the first one times 52 and the second one."""
    return tuple(of(one, other) for one in DECK for other in DECK)


def _follow(one: Card, other: Card, gap: int) -> tuple[int, ...]:
    """In which of the orders the second one follows the first one."""
    return tuple(at for at, order in enumerate(DECK_ORDERS) if order.follows(one, other, gap))


# Worked out once: it is asked whenever a card comes, before that one is shown.
_NEXT: Final = _pairs(lambda one, other: _rises(one, other, 1) or _falls(one, other, 1))
_FOLLOWS: Final = tuple(_pairs(partial(_follow, gap=gap)) for gap in range(MAX_GAP + 1))
"""By gap."""
