"""Twin tables that differ in a hidden card only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from hypothesis import HealthCheck, Phase, settings

from controller.procedure.model.effects import Prompt
from controller.rules.cards import DECK, VALUE, Card
from controller.rules.hands import is_blackjack
from hil.table.robots import PlayerChoice
from hil.table.robots.robot import ACTS
from tests.support.api.at_api import run
from tests.support.procedure.random_games import game_with

SEATS: Final = 2


UP: Final = SEATS


HOLE: Final = 2 * SEATS + 1
"""Where they lie in the order of the deal."""


DEEP: Final = (100, 199)
"""Cards that no round comes to, in any of these shoes."""


class Whims:
    """Players who want anything that they may."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(seat, "main", 1000 * seat) for seat in range(1, SEATS + 1)]

    def choose(self, prompt: Prompt) -> PlayerChoice:
        wanted = [choice for choice in prompt.choices if choice in ACTS]
        return PlayerChoice(self._random.choice(wanted))


def shoe(game: str, seed: int) -> list[Card]:
    """A shoe whose deal is not over at once."""
    cards = list(DECK) * game_with(game, {}).decks
    Random(seed).shuffle(cards)
    return cards


def swapped(game: str, cards: list[Card], deep: int) -> list[Card]:
    """The same order, but that a card from so deep in the shoe will lie face down."""
    hole = HOLE + (1 if game_with(game, {}).options.burn.on_shuffle else 0)
    made = list(cards)
    made[hole], made[deep] = made[deep], made[hole]
    return made


def up_and_hole(game: str, cards: list[Card]) -> tuple[Card, Card]:
    burned = 1 if game_with(game, {}).options.burn.on_shuffle else 0
    return cards[UP + burned], cards[HOLE + burned]


class Heard(NamedTuple):
    """All that was said at a table, in order."""

    hidden: list[str]
    """Before the card was turned over."""
    shown: list[str]
    """After it."""
    secrets: frozenset[str] = frozenset()


Play: TypeAlias = Callable[
    [Path, str, list[Card], int, tuple[Card, Card]], Coroutine[Any, Any, Heard]
]
"""Plays a round of a game with these cards and this seed; two of them differ between twins."""


def played(play: Play, game: str, cards: list[Card], seed: int, two: tuple[Card, Card]) -> Heard:
    found: list[Heard] = []

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            found.append(await play(Path(folder), game, cards, seed, two))

    run(main())
    return found[0]


def are_twins(game: str, seed: int, deep: int) -> bool:
    """Whether two cards differ, and the check, which tells that one bit, tells the same of them."""
    cards = shoe(game, seed)
    up, hole = up_and_hole(game, cards)
    other = cards[deep]
    return other != hole and is_blackjack(up, hole) == is_blackjack(up, other)


def twins(play: Play, game: str, seed: int, deep: int) -> tuple[Heard, Heard]:
    """The same random round, played with two cards face down."""
    cards = shoe(game, seed)
    _, hole = up_and_hole(game, cards)
    other = cards[deep]
    two = min(hole, other), max(hole, other)
    swap = swapped(game, cards, deep)
    return played(play, game, cards, seed, two), played(play, game, swap, seed, two)


def deep_alike(game: str, seed: int) -> int:
    """Where another card of the hole card's value is, deep in the shoe."""
    cards = shoe(game, seed)
    _, hole = up_and_hole(game, cards)
    alike = (at for at in range(*DEEP) if VALUE[cards[at]] == VALUE[hole] and cards[at] != hole)
    return next(alike)


def few_rounds(count: int) -> settings:
    """Settings of a test that plays so many rounds."""
    return settings(
        max_examples=count,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.reuse, Phase.generate],  # none is smaller for less
    )
