"""The shoe of a scripted round: its own cards on top, and the rest of the decks behind them."""

from __future__ import annotations

from collections import Counter

from controller.audit.simulate import plain_round
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.rules.cards import DECK, Card
from controller.sim.scripts import ScriptRound
from hil.table.robots import wire_name


def whole_shoe(game: Game, top: tuple[Card, ...]) -> tuple[str, ...]:
    """All cards of the game, these first, as hands name them."""
    left = Counter(DECK * game.decks) - Counter(top)
    # Spread, so that the cards after the script's are not sorted.
    rest = sorted(left.elements(), key=lambda card: (card * 29 + 7) % 53)
    return tuple(map(wire_name, (*top, *rest)))


def shoe_of(game: Game, *rounds: ScriptRound) -> tuple[str, ...]:
    """A whole shoe that begins with the cards of these rounds."""
    return whole_shoe(game, tuple(card for one in rounds for card in one.cards))


def rounds_of(scripted: ScriptRound, procedure: Procedure) -> tuple[ScriptRound, ...]:
    """Returns the round, after a plain one if it must not be the first of its shuffle. Raises
    UsageProblem if no plain round is possible."""
    if scripted.script.first_round_of_shuffle:
        return (scripted,)
    return (plain_round(scripted, procedure), scripted)
