"""Players' choices and their buttons; names of cards in control requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from controller.procedure.model.effects import Prompt
from controller.rules.cards import NAMES, Card
from firmware_protocol.device import ButtonName

BUTTONS: Final[Mapping[str, ButtonName]] = {
    "hit": "hit",
    "stand": "stand",
    "double": "double",
    "split": "split",
    "surrender": "surrender",
    "insure": "yes",
    "even_money": "yes",
    "take_pay": "yes",
    "decline": "no",
    "decline_pay": "no",
}
"""The button for each choice."""
STANDING: Final = "standing"
"""Placeholder among bets for the seat's standing wager."""


class PlayerChoice(NamedTuple):
    """A choice of a player."""

    choice: str
    amount: int | None = None
    seat: int = 0
    """0: the seat and hand that are asked."""
    hand: int = 0


def button_of(prompt: Prompt, said: PlayerChoice) -> ButtonName | None:
    """Returns the asked seat's button for a choice. None if the dealer has to enter it: it has an
    amount, or is not among the prompt's choices."""
    if said.seat or said.amount is not None or said.choice not in prompt.choices:
        return None
    if said.choice == "insure" and "even_money" in prompt.choices:
        return None  # the button means even money
    return BUTTONS.get(said.choice)


def card_of(name: str) -> Card:
    """Parse a card's name."""
    return NAMES.index(name.upper())


def wire_name(card: Card) -> str:
    """Returns a card's name in control requests."""
    name = NAMES[card]
    return name[0] + name[1].lower()
