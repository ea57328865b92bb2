"""Vaults: store the value of the hole card outside the procedure, until the reveal.

A vault represents the shoe: it makes the event of each card, with what the procedure may know.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Protocol

from controller.games import SHOE
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    Event,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
)
from controller.rules.cards import DECK, Card
from controller.rules.hands import is_blackjack


class HoleVault(Protocol):
    """Makes the events of a shoe's cards."""

    @property
    def hole(self) -> Card:
        """The current or last hole card, for a simulated shoe, which must not deal it again."""

    def drawn(self, card: Card, /) -> Event:
        """The event of a face-up card."""

    def dealt(self, card: Card, /) -> Event:
        """The event of the hole card, face down."""

    def burned(self, card: Card, /) -> Event:
        """The event of a burned card."""

    def checked(self, up: Card, /) -> Event:
        """The event of the check: whether hole card and up card are a blackjack."""

    def revealed(self) -> Event:
        """The event of the reveal."""


_DRAWN: Final[dict[Card, Event]] = {card: CardDrawn(SHOE, card) for card in DECK}
# The commitment of a simulated hole card is never verified. It must only not reveal the card.
_REVEALED: Final = tuple(HoleRevealed(SHOE, card, "simulated") for card in DECK)
_CHECKED: Final = {found: HoleChecked(SHOE, found) for found in (False, True)}
_BURNED: Final = CardBurned(SHOE)


class SimulatedVault:
    """For rounds that are not recorded: events are precomputed."""

    __slots__ = ("_dealt", "hole")

    drawn = staticmethod(_DRAWN.__getitem__)

    def __init__(self) -> None:
        self.hole: Card = -1
        self._dealt = 0

    def dealt(self, card: Card, /) -> Event:
        self.hole = card
        self._dealt += 1
        return HoleDealt(SHOE, f"simulated-{self._dealt}")

    def burned(self, card: Card, /) -> Event:
        return _BURNED

    def checked(self, up: Card, /) -> Event:
        return _CHECKED[is_blackjack(up, self.hole)]

    def revealed(self) -> Event:
        return _REVEALED[self.hole]


class ScriptVault:
    """For scripts, whose cards are no secret: the commitment needs no nonce."""

    def __init__(self) -> None:
        self.hole: Card = -1

    def drawn(self, card: Card, /) -> Event:
        return CardDrawn(SHOE, card)

    def dealt(self, card: Card, /) -> Event:
        self.hole = card
        return HoleDealt(SHOE, commitment_of(card))

    def burned(self, card: Card, /) -> Event:
        return CardBurned(SHOE)

    def checked(self, up: Card, /) -> Event:
        return HoleChecked(SHOE, is_blackjack(up, self.hole))

    def revealed(self) -> Event:
        return HoleRevealed(SHOE, self.hole, commitment_of(self.hole))


def commitment_of(card: Card) -> str:
    """Returns the commitment of a scripted hole card that is not recorded."""
    return sha256(b"script" + bytes([card])).hexdigest()
