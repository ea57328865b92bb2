"""Cards and hands, as tests write them."""

from __future__ import annotations

from msgspec.structs import replace

from controller.rules.cards import Card, parse_card
from controller.rules.hands import Hand, with_card


def cards(names: str) -> tuple[Card, ...]:
    return tuple(parse_card(name, "here") for name in names.split())


def hand(names: str, **more: object) -> Hand:
    """Seat 1's hand with 10 on it, counted card by card."""
    held = Hand(1, 10, 10)
    for card in cards(names):
        held = with_card(held, card)
    return replace(held, **more)
