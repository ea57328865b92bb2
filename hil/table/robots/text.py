"""What a player wants, in words and at the station; and cards by the names that hands use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from controller.procedure.model.effects import Prompt
from controller.rules.cards import NAMES, Card
from firmware_protocol.device.control import ButtonName

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
"""What a seat presses for its choice."""
STANDING: Final = "standing"
"""Among bets: the seat's standing wager, by its bet button."""


class PlayerChoice(NamedTuple):
    """What a player wants."""

    choice: str
    amount: int | None = None
    seat: int = 0
    """0: the seat that is asked, for the hand that is."""
    hand: int = 0


def button_of(prompt: Prompt, said: PlayerChoice) -> ButtonName | None:
    """What the seat that is asked presses for it. An amount is told to the dealer, and so is what
    is not open to it."""
    if said.seat or said.amount is not None or said.choice not in prompt.choices:
        return None
    if said.choice == "insure" and "even_money" in prompt.choices:
        return None  # there the button is for even money
    return BUTTONS.get(said.choice)


def card_of(name: str) -> Card:
    """A card as hands name it."""
    return NAMES.index(name.upper())


def wire_name(card: Card) -> str:
    """As hands name it."""
    name = NAMES[card]
    return name[0] + name[1].lower()
