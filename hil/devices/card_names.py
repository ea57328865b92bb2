"""Names and numbers of cards, and orders of decks.

A name is rank and suit, `Ac` to `Ks`; the cut card is `cut`. A number on the wire is
suit x 13 + rank; the cut card is CARD_CUT. Orders are lists from the top.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

from firmware_protocol.device import CannotDo
from firmware_protocol.messages import CARD_CUT, CARDS, DeckKind

RANKS: Final = "A23456789TJQK"
NAMES: Final = tuple(rank + suit for suit in "cdhs" for rank in RANKS)
CUT: Final = "cut"
MAX_CARDS: Final = 10_000
"""Cards in a simulated shoe: a position has 16 bits."""

_NUMBERS: Final = {**{name: number for number, name in enumerate(NAMES)}, CUT: CARD_CUT}
_NAME_OF: Final = {number: name for name, number in _NUMBERS.items()}


def number(name: str) -> int:
    """The wire's number of a card."""
    if name not in _NUMBERS:
        raise CannotDo(f"{name!r} is no card", "Ac to Ks, and cut")
    return _NUMBERS[name]


def name(card: int) -> str:
    return _NAME_OF[card]


def names_of(cards: Iterable[int]) -> list[str]:
    return [_NAME_OF[card] for card in cards]


def is_picture(card: int) -> bool:
    """Whether it is a jack, queen or king."""
    return card < CARDS and card % len(RANKS) >= RANKS.index("J")


def neighbour(card: int) -> int:
    """The card that a misreading reader reports: the next rank of the suit."""
    suit, rank = divmod(card, len(RANKS))
    return suit * len(RANKS) + (rank + 1) % len(RANKS)


def in_deck(card: int, kind: DeckKind) -> bool:
    """Whether a deck of this kind has the card."""
    return kind is not DeckKind.SPANISH_48 or card % len(RANKS) != RANKS.index("T")


def deck_size(kind: DeckKind) -> int:
    """Cards of one deck of this kind."""
    return sum(in_deck(card, kind) for card in range(CARDS))


def new_decks(decks: int, kind: DeckKind = DeckKind.FULL_52) -> list[int]:
    """New decks, each in the order of its box."""
    return [card for card in range(CARDS) if in_deck(card, kind)] * decks


def shuffled(cards: Sequence[int], seed: int | str) -> list[int]:
    """The same cards in the order that this seed gives."""
    order = list(cards)
    random.Random(seed).shuffle(order)
    return order


def changed(cards: Sequence[int], remove: Iterable[str], add: Iterable[str]) -> list[int]:
    """The cards without those in `remove`, and with those in `add` at the end."""
    out = list(cards)
    for one in remove:
        card = _number_uncut(one, "remove")
        if card not in out:
            raise CannotDo(f"there is no {one} left to remove", "remove: cards that are there")
        out.remove(card)
    return out + [_number_uncut(one, "add") for one in add]


def _number_uncut(one: str, where: str) -> int:
    if one == CUT:
        raise CannotDo(f"the cut card in {where}", "cut_at, or cut in cards")
    return number(one)


def with_cut(cards: Sequence[int], cut_at: int | None) -> list[int]:
    """The cards with the cut card after `cut_at` of them; unchanged with None."""
    if cut_at is None:
        return list(cards)
    if CARD_CUT in cards:
        raise CannotDo("the cut card is among the cards already", "no cut_at")
    if cut_at > len(cards):
        raise CannotDo(f"there are {len(cards)} cards", f"cut_at: 1 to {len(cards)}")
    return [*cards[:cut_at], CARD_CUT, *cards[cut_at:]]
