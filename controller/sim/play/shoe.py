"""A random shoe for simulated rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from controller.errors import UsageProblem
from controller.procedure.model.felt import on_felt
from controller.procedure.model.state import State
from controller.rules.cards import DECK, Card


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
