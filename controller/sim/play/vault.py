"""Where the value of a hole card lies while nobody may know it: outside of the procedure.

The vault speaks for the shoe: it says of each card what the procedure may hear of it.
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
    """What becomes of the cards of a shoe."""

    @property
    def hole(self) -> Card:
        """The dealer's hole card: the one that lies face down, or lay there last. For the shoe of
        a simulation, which must not deal it again."""

    def drawn(self, card: Card, /) -> Event:
        """It comes face up."""

    def dealt(self, card: Card, /) -> Event:
        """It is the hole card, and comes face down."""

    def burned(self, card: Card, /) -> Event:
        """It goes to the discard rack, unseen."""

    def checked(self, up: Card, /) -> Event:
        """Whether the hole card makes a blackjack of this one."""

    def revealed(self) -> Event:
        """The hole card is turned over."""


_DRAWN: Final[dict[Card, Event]] = {card: CardDrawn(SHOE, card) for card in DECK}
# Nobody checks the commitment of a simulated hole card. It only has to tell nothing of the card.
_REVEALED: Final = tuple(HoleRevealed(SHOE, card, "simulated") for card in DECK)
_CHECKED: Final = {found: HoleChecked(SHOE, found) for found in (False, True)}
_BURNED: Final = CardBurned(SHOE)


class SimulatedVault:
    """For rounds that nobody records: every event was made beforehand."""

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
    """A script's cards are no secret: what binds its hole card needs no nonce."""

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
    """What binds a scripted hole card where nothing is recorded."""
    return sha256(b"script" + bytes([card])).hexdigest()
