"""What one card more can make of the hand in turn, for the dealer to point out."""

from __future__ import annotations

from typing import Final

from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.rules.hands import plus

_ONE_OF_EACH: Final = tuple(range(10))
"""A card of each value: the ace to the ten of one suit."""


def bonuses_near(g: Game, s: State) -> tuple[str, ...]:
    """The instant winners that one card more could make of the hand in turn."""
    hand = s.hands[s.turn]
    pays = g.options.instant
    if hand.doubles or (hand.split and not pays.on_split) or hand.total >= 21:
        return ()
    count = len(hand.cards) + 1
    totals = {plus(hand.total, hand.soft, card)[0] for card in _ONE_OF_EACH}
    near = []
    if pays.cards_21 is not None and count >= pays.cards_21 and 21 in totals:
        near.append("instant21")
    if pays.cards_count is not None and count >= pays.cards_count and min(totals) < 21:
        near.append("instant6")
    return tuple(near)
