"""Exact figures that need no rounds: fractions, for cards from a freshly shuffled shoe."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TypeAlias

from controller.rules.hands import plus
from controller.rules.money import Odds
from controller.rules.options import Options
from controller.rules.payouts import dealer_draws

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
