"""What a person at the table can reach, see and say: devices, chips on the felt, choices."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from controller.procedure.model.effects import Prompt
from controller.procedure.model.felt import seat_of
from controller.procedure.model.state import State
from controller.rules.cards import NAMES, Card
from firmware_protocol.device import Answer, ButtonName, CannotDo, ControlRequest, Describe

ARMING: Final = 0.5
"""Timeout in seconds for a button to be lit."""
DEVICE_INTERVAL: Final = 0.005
"""Interval in seconds between checks of a device."""


class HandledDevice(Protocol):
    """A device that takes control requests."""

    def request(self, request: ControlRequest, /) -> Answer: ...


class TableSurroundings(Protocol):
    """The devices of a table, by what they are for."""

    @property
    def decks(self) -> int:
        """Number of decks of this table."""

    @property
    def shoe(self) -> HandledDevice: ...
    @property
    def shuffler(self) -> HandledDevice | None: ...
    def station_of(self, seat: int, /) -> HandledDevice | None: ...


def chips(felt: State, seat: int, bet: str) -> int:
    """Returns the amount of a bet on the felt."""
    found = seat_of(felt, seat)
    return 0 if found is None else found.amount(bet)


def mechanism(device: HandledDevice) -> Mapping[str, Any]:
    """Returns the mechanism's state. Raises CannotDo if the device has no power."""
    found: Mapping[str, Any] | None = device.request(Describe()).get("mechanism")
    if not found:
        raise CannotDo("there is no power", "wait until it is back")
    return found


async def lit(station: HandledDevice, seat: int, button: ButtonName) -> bool:
    """Whether the button is lit within ARMING seconds."""
    try:
        async with asyncio.timeout(ARMING):
            while not _may_press(station, seat, button):
                await asyncio.sleep(DEVICE_INTERVAL)
    except TimeoutError:
        return False
    return True


def _may_press(station: HandledDevice, seat: int, button: str) -> bool:
    inside = station.request(Describe()).get("mechanism")
    if not inside:
        return False  # it has no power
    lit = inside["seats"][str(seat)]
    return button in lit["armed"] and button not in lit["down"]


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


def button_of(prompt: Prompt, chosen: PlayerChoice) -> ButtonName | None:
    """Returns the asked seat's button for a choice. None if the dealer has to enter it: it has an
    amount, or is not among the prompt's choices."""
    if chosen.seat or chosen.amount is not None or chosen.choice not in prompt.choices:
        return None
    if chosen.choice == "insure" and "even_money" in prompt.choices:
        return None  # the button means even money
    return BUTTONS.get(chosen.choice)


def card_of(name: str) -> Card:
    """Parse a card's name."""
    return NAMES.index(name.upper())


def wire_name(card: Card) -> str:
    """Returns a card's name in control requests."""
    name = NAMES[card]
    return name[0] + name[1].lower()
