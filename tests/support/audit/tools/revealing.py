"""Rounds at random, as `dealing` has them, whose hole cards are opened as a table opens them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from controller.audit.format.hole_cards import opening
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event, HoleRevealed
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.rules.cards import Card
from tests.support.audit.record.dealing import KEYS, Dealing
from tests.support.procedure.random_games import some_game
from tests.support.procedure.random_table import Engine


class Revealing(Dealing):
    """Keeps what the shoe said of each card that came face down."""

    def __init__(self, engine: Engine, seed: str) -> None:
        super().__init__(engine, seed)
        self._illegal = (
            0.0  # what nobody could bring: a seat that cannot be, a card without a place
        )
        self._openings: dict[str, str] = {}

    def hide(self, card: Card) -> str:
        commitment = super().hide(card)
        down = self.vault.face_down
        assert down is not None
        self._openings[commitment] = opening(KEYS.hole, down.cursor, down.body).open().hex()
        return commitment

    def _bound(self, event: Event) -> Event:
        bound = super()._bound(event)
        if isinstance(bound, HoleRevealed) and self.state.hole in self._openings:
            opened = self._openings[self.state.hole]
            return replace(bound, card=self._vault[self.state.hole], opening=opened)
        return bound


def revealed(name: str, seed: str, events: int = 400) -> Revealing:
    """A table after so many events, wherever that is in a round."""
    game, what = some_game(Random(f"revealing {name} {seed}"), name)
    table = Revealing(Procedure(game), f"revealing {what} {seed}")
    while len(table.entries) < events:
        table.once()
    return table


def played(game: Game, there: Callable[[State], bool], seed: str = "other") -> Revealing:
    """A table that has come to such a state."""
    table = Revealing(Procedure(game), seed)
    while not (table.entries and there(table.state)):
        table.once()
    return table
