"""Twin tables that differ in a hidden card only."""

from __future__ import annotations

from random import Random
from typing import Final

from controller.procedure.model.effects import Prompt
from controller.rules.cards import DECK, Card
from hil.table.robots import PlayerChoice
from hil.table.robots.robot import ACTS
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
