"""The shoe of simulated rounds: its random cards, and the vault of the hole card.

A vault makes the event of each card, with what the procedure may know. It stores the value of the
hole card outside the procedure, until the reveal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, Protocol

from controller.errors import UsageProblem
from controller.games import SHOE
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    Event,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
)
from controller.procedure.model.felt import on_felt
from controller.procedure.model.state import State
from controller.rules.cards import DECK, Card
from controller.rules.hands import is_blackjack


class RandomShoe:
    """Draws a random card of those that are left.

    Equivalent to a shuffle, at the cost of one swap per card drawn, independent of the number of
    cards.
    """

    __slots__ = ("_cards", "_random", "left")

    def __init__(self, decks: int, random: Callable[[], float]) -> None:
        self._cards: list[Card] = list(DECK) * decks
        self._random = random
        self.left = len(self._cards)
        """The number of cards not drawn; they are the first ones in the list."""

    def shuffle(self) -> None:
        """Put all cards back."""
        self.left = len(self._cards)

    def refill(self, on_felt: Iterable[Card]) -> None:
        """Put all cards back except those on the felt."""
        felt = Counter(on_felt)
        discards = list((Counter(self._cards) - felt).elements())
        self._cards = [*discards, *felt.elements()]
        self.left = len(discards)

    def draw(self) -> Card:
        """Returns a random card; at least one must be left."""
        self.left = last = self.left - 1
        cards = self._cards
        index = int(self._random() * (last + 1))
        card = cards[index]
        cards[index] = cards[last]
        cards[last] = card
        return card


def refill(shoe: RandomShoe, s: State, hole: Card) -> None:
    """Put all cards back except those in play. Raises UsageProblem if none is left."""
    in_play = list(on_felt(s))
    if s.hole:
        in_play.append(hole)
    if s.spare is not None and s.spare.card >= 0:
        in_play.append(s.spare.card)
    shoe.refill(in_play)
    if not shoe.left:
        raise UsageProblem(
            "--seats", "all the cards lie on the felt and more are needed", "fewer seats"
        )


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


class ScriptVault(SimulatedVault):
    """For scripts, whose cards are no secret: the commitment needs no nonce."""

    __slots__ = ()

    def dealt(self, card: Card, /) -> Event:
        self.hole = card
        return HoleDealt(SHOE, commitment_of(card))

    def revealed(self) -> Event:
        return HoleRevealed(SHOE, self.hole, commitment_of(self.hole))


def commitment_of(card: Card) -> str:
    """Returns the commitment of a scripted hole card that is not recorded."""
    return sha256(b"script" + bytes([card])).hexdigest()
