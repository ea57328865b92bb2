"""Cards for simulated rounds, drawn one at a time from a shoe that was well shuffled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from controller.errors import UsageProblem
from controller.procedure.model.felt import on_felt
from controller.procedure.model.state import State
from controller.rules.cards import DECK, Card


class RandomShoe:
    """No card has a place before it is drawn: each draw takes any of those that are left.

    That is as good as a shuffle and costs a swap a card, whether a round uses five cards of 52
    or of 416.
    """

    __slots__ = ("_cards", "_random", "left")

    def __init__(self, decks: int, random: Callable[[], float]) -> None:
        self._cards: list[Card] = list(DECK) * decks
        self._random = random
        self.left = len(self._cards)
        """How many cards have not been drawn; they are the first ones in the list."""

    def shuffle(self) -> None:
        """Every card is in the shoe again."""
        self.left = len(self._cards)

    def refill(self, on_felt: Iterable[Card]) -> None:
        """Every card but those on the felt is in the shoe again."""
        felt = Counter(on_felt)
        discards = list((Counter(self._cards) - felt).elements())
        self._cards = [*discards, *felt.elements()]
        self.left = len(discards)

    def draw(self) -> Card:
        """One of the cards that are left; there must be one."""
        self.left = last = self.left - 1
        cards = self._cards
        index = int(self._random() * (last + 1))
        card = cards[index]
        cards[index] = cards[last]
        cards[last] = card
        return card


def refill(shoe: RandomShoe, s: State, hole: Card) -> None:
    """The discards are in the shoe again: all cards but those in play."""
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
