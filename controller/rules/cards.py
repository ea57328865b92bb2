"""Cards as small integers: suit x 13 + rank, the wire's own numbering.

Integers are cheap to copy, to compare and to index tables with. They are parsed from and written as
text ("AD", "TH") at the edges only.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from controller.errors import UsageProblem

Card: TypeAlias = int
"""0..51: suit x 13 + rank; suits in the order C D H S, ranks A 2 .. 9 T J Q K."""

RANKS: Final = "A23456789TJQK"
SUITS: Final = "CDHS"
DECK: Final = tuple(range(52))
NAMES: Final = tuple(rank + suit for suit in SUITS for rank in RANKS)
VALUE: Final = tuple(min(card % 13 + 1, 10) for card in DECK)
"""Pips as a total counts them: ace 1, picture cards 10."""
RANK: Final = tuple(card % 13 for card in DECK)
SUIT: Final = tuple(card // 13 for card in DECK)
DIAMONDS: Final = 1
ACE: Final = 1
"""The value of an ace before it is promoted to 11."""

_NUMBERS: Final = {name: number for number, name in enumerate(NAMES)}


def parse_card(text: str, where: str) -> Card:
    """Parse a card such as AD or TH. Raises UsageProblem."""
    card = _NUMBERS.get(text)
    if card is None:
        raise UsageProblem(
            where,
            f"{text!r} is not a card",
            "a rank of A23456789TJQK and a suit of CDHS, such as AD or TH",
        )
    return card


def card_names(cards: tuple[Card, ...]) -> tuple[str, ...]:
    return tuple(NAMES[card] for card in cards)
