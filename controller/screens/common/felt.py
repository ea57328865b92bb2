"""A felt as a value: its face-up cards, its bets, and whose turn it is.

It is made of the procedure's state, which contains no face-down card, and of nothing of the shoe.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from controller.procedure.model.state import Seat, State
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand, is_blackjack

DOWN: Final = "--"
"""The name of a face-down card."""
_BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster", "insurance")


class FeltHand(Struct, frozen=True):
    cards: tuple[str, ...]
    total: str
    wager: str
    tags: tuple[str, ...]
    turn: bool
    next: bool = False
    """The next card goes to it."""
    due: bool = False
    """It is paid, taken or given back now."""
    words: str = ""


class FeltSeat(Struct, frozen=True):
    number: int
    name: str
    plays: bool = False
    bets: tuple[tuple[str, str], ...] = ()
    """Bets and amounts, except the main wager of a hand."""
    hands: tuple[FeltHand, ...] = ()
    marked: bool = False
    """Something is asked of it."""
    words: str = ""


class Felt(Struct, frozen=True):
    name: str
    """Of the dealer's place."""
    dealer: tuple[str, ...]
    """The last may lie face down."""
    dealer_total: str
    seats: tuple[FeltSeat, ...]
    spare: str
    """The card beside the shoe; empty if absent."""
    beside: str
    """The name of that place."""
    dealer_next: bool = False
    notes: tuple[tuple[str, str], ...] = ()
    """Lines in the middle, with their kind: held, due."""
    words: tuple[str, ...] = ()
    """The same as text, for screen readers."""


def names_of(cards: tuple[Card, ...]) -> tuple[str, ...]:
    return tuple(NAMES[card] for card in cards)


def dealers_cards(s: State) -> tuple[str, ...]:
    return (*names_of(s.dealer), DOWN) if s.hole else names_of(s.dealer)


def spare_card(s: State) -> str:
    if s.spare is None:
        return ""
    return NAMES[s.spare.card] if s.spare.card >= 0 else DOWN


def hands_at(s: State, seat: Seat) -> list[tuple[int, Hand]]:
    """The hands on the felt, with their turn: in play, or tucked under the Buster wager."""
    hands = [(turn, hand) for turn, hand in enumerate(s.hands) if hand.seat == seat.number]
    return [one for one in hands if not one[1].out or (one[1].busted and seat.buster > 0)]


def bets_at(s: State, seat: Seat) -> list[tuple[str, int]]:
    """The bets that lie there, except the main wager of a hand."""
    dealt = any(hand.seat == seat.number for hand in s.hands)
    bets = [(bet, getattr(seat, bet)) for bet in _BETS if not (bet == "main" and dealt)]
    return [one for one in bets if one[1]]


def tags_of(hand: Hand) -> tuple[str, ...]:
    tags = {
        "blackjack": len(hand.cards) == 2 and not hand.split and is_blackjack(*hand.cards),
        "bust": hand.busted,
        "doubled": hand.doubles > 0,
        "tucked": hand.out,
    }
    return tuple(tag for tag, holds in tags.items() if holds)


def is_asked(s: State, seat: Seat) -> bool:
    """Whether the seat is the one that is asked now, at a step that asks seats."""
    return s.asked < len(s.seats) and s.seats[s.asked].number == seat.number
