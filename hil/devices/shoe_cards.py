"""The cards in a shoe, at its gate and outside: the state that a shoe stores."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from firmware_protocol.device import CannotDo, Load
from firmware_protocol.messages import CARD_UNREAD, JamCode
from hil.devices import card_names
from hil.devices.pending_events import PendingEvents

FIRST_BACK: Final = 1
OTHER_BACK: Final = 2
"""Backs of the two batches that alternate, unless a request names the back."""


class DrawnCard(Struct, frozen=True, array_like=True, gc=False):
    """A card that has passed the reader."""

    card: int
    reported: int
    """CARD_UNREAD if nothing was read."""
    pos: int


class ShoeContents(Struct):
    loading: int = 0
    decks: int = 0
    """As set at the shoe; 0 not known."""
    pos: int = 0
    """The last position that was used."""
    cards: bytes = b""
    """In the shoe, from the top."""
    held: list[DrawnCard] = []
    """At the gate, until their records are committed."""
    out: list[DrawnCard] = []
    """Out of the shoe, in order."""
    back: int = FIRST_BACK
    """The maker's number of their backs."""
    cover_open: bool = False
    jam: int = JamCode.CLEARED
    pending: PendingEvents = msgspec.field(default_factory=PendingEvents, name="owed")

    def load(self, loading: int, decks: int, cards: list[int], back: int | None = None) -> None:
        """Replace the cards: positions start at 1 again. Without `back`, a batch that was dealt
        from is followed by the other one."""
        other = OTHER_BACK if self.back == FIRST_BACK else FIRST_BACK
        self.back = back or (other if self.pos else self.back)
        self.loading, self.decks, self.pos = loading, decks, 0
        self.cards = bytes(cards)
        self.out = []

    def is_duplicate(self, reported: int) -> bool:
        """Whether one more `reported` card exceeds the number of decks."""
        if not self.decks or reported == CARD_UNREAD:
            return False
        return sum(one.reported == reported for one in (*self.out, *self.held)) >= self.decks

    def release(self) -> None:
        """Open the gate for the cards behind it."""
        self.out += self.held
        self.held = []

    def retract(self) -> DrawnCard:
        """Put the last card back on top; the next card has its position again."""
        last = self.out.pop()
        self.pos = last.pos - 1
        self.cards = bytes((last.card,)) + self.cards
        return last


def order_of(request: Load) -> list[int]:
    """The cards that a request loads, from the top."""
    cards = [card_names.number(name) for name in request.cards]
    order = card_names.changed(
        cards or card_names.new_decks(request.decks), request.remove, request.add
    )
    if request.seed and not cards:
        order = card_names.shuffled(order, request.seed)
    order = card_names.with_cut(order, request.cut_at)
    if len(order) > card_names.MAX_CARDS:
        raise CannotDo(f"{len(order)} cards are too many", f"at most {card_names.MAX_CARDS}")
    return order
