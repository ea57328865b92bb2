"""A peer: PyPI's blackjack21, which has no procedure, prompts or record, on classic rules."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from random import Random
from typing import Any, Final

from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND
from controller.sim.play import Strategy, basic
from hil.bench.measure import Contestant, Line, Pace, Section, contest, rate, ratio
from hil.bench.rows import rounds_of, through_rows

GAME: Final = "classic"
_DECKS: Final = 6
_MAX_HANDS: Final = 4
_AT_LEAST: Final = 0.4
_SEED: Final = 21


class _PeerCards:
    """The peer's cards, drawn as in our simulation: a random one of the remaining cards."""

    def __init__(self, deck: list[Any], random: Callable[[], float]) -> None:
        self._cards = deck
        self._random = random
        self._left = len(deck)

    def __len__(self) -> int:
        return self._left

    def shuffle(self) -> None:
        self._left = len(self._cards)

    def draw_card(self) -> Any:
        self._left = last = self._left - 1
        cards = self._cards
        index = int(self._random() * (last + 1))
        card = cards[index]
        cards[index] = cards[last]
        cards[last] = card
        return card


def _deck() -> list[Any]:
    from blackjack21 import DEFAULT_SUITS, Deck

    return list(Deck(DEFAULT_SUITS, count=_DECKS))


def peer() -> Contestant:
    """Returns a contestant that plays at the peer's table with the same strategy."""
    from blackjack21 import Table
    from blackjack21.utils import calculate_hand

    cards = _PeerCards(_deck(), Random(_SEED).random)
    table = Table([("seat-1", 2)], cards, hit_soft_17=True, on_round_reset=cards.shuffle)
    strategy = basic(GAME)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            table.start_game()
            while (hand := table.current_hand) is not None:
                _decide(table, hand, strategy, calculate_hand)

    return run


def _decide(table: Any, hand: Any, strategy: Strategy, calculate_hand: Any) -> None:
    held = hand._cards  # the hand's iterator would only slow it down
    total, soft = calculate_hand(held)
    count = len(held)
    hands = len(table.current_player.hands)
    pair, legal = 0, HIT | STAND
    if count == 2:
        legal |= DOUBLE
        if held[0].value == held[1].value:
            pair = held[0].value % 10 or 10  # an ace is 11 there and 1 here
            legal |= SPLIT if hands < _MAX_HANDS else 0
    up = table.dealer_visible_hand[0].value % 10 or 10
    bit = strategy.choose(total, soft, count, pair, 0, hands > 1, up, legal)
    if bit == HIT:
        table.hit()
    elif bit == STAND:
        table.stand()
    elif bit == DOUBLE:
        table.double_down()
    else:
        table.split()


def _measure(pace: Pace) -> list[Line]:
    name = "holecard beside blackjack21"
    if find_spec("blackjack21") is None:
        note = "blackjack21 is not installed: it comes with the bench extra"
        return [Line("ratio", name, None, "", note=note)]
    rates = contest({"holecard": rounds_of(GAME, through_rows), "peer": peer()}, pace)
    return [
        rate("holecard", f"holecard, {GAME}", rates.median("holecard")),
        rate("peer", f"blackjack21 {version('blackjack21')}", rates.median("peer")),
        ratio("ratio", name, rates.ratio("holecard", "peer"), _AT_LEAST),
    ]


PEER: Final = Section("peer", "beside a library without procedure, prompts or record", _measure)
