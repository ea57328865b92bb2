"""What lies in a shoe, at its gate and before it: what a shoe keeps over restarts."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from firmware_protocol.device.control import Load
from firmware_protocol.device.interfaces import CannotDo
from firmware_protocol.messages.enums import JamCode
from firmware_protocol.messages.limits import CARD_UNREAD
from hil.devices import card_names
from hil.devices.pending_events import PendingEvents

FIRST_BACK: Final = 1
OTHER_BACK: Final = 2
"""Of the two batches that take turns, where nobody says which backs they have."""


class DrawnCard(Struct, frozen=True, array_like=True, gc=False):
    """A card that has passed the reader."""

    card: int
    seen: int
    """What was reported; CARD_UNREAD if nothing was read."""
    pos: int


class ShoeContents(Struct):
    loading: int = 0
    decks: int = 0
    """As set at the shoe; 0 not known."""
    pos: int = 0
    """The last position that was taken."""
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
    owed: PendingEvents = msgspec.field(default_factory=PendingEvents)

    @classmethod
    def read(cls, kept: bytes) -> ShoeContents:
        return msgspec.msgpack.decode(kept, type=ShoeContents) if kept else cls()

    def write(self) -> bytes:
        return msgspec.msgpack.encode(self)

    def load(self, loading: int, decks: int, cards: list[int], back: int | None = None) -> None:
        """Other cards: positions begin anew, and nothing has been seen. Without a back it is the
        batch whose turn it is."""
        turn = OTHER_BACK if self.back == FIRST_BACK else FIRST_BACK
        self.back = back or (turn if self.pos else self.back)
        self.loading, self.decks, self.pos = loading, decks, 0
        self.cards = bytes(cards)
        self.out = []

    def often(self, seen: int) -> bool:
        """Whether one more `seen` is more than the decks hold."""
        if not self.decks or seen == CARD_UNREAD:
            return False
        before = sum(one.seen == seen for one in (*self.out, *self.held))
        return before >= self.decks

    def release(self) -> None:
        """The gate lets go of what it held."""
        self.out += self.held
        self.held = []

    def retract(self) -> DrawnCard:
        """The last card goes back on top; the next one has its position again."""
        last = self.out.pop()
        self.pos = last.pos - 1
        self.cards = bytes((last.card,)) + self.cards
        return last


def order_of(hand: Load) -> list[int]:
    """The cards that a hand puts in, from the top."""
    if hand.cards:
        order = card_names.changed(
            [card_names.number(name) for name in hand.cards], hand.remove, hand.add
        )
    else:
        order = card_names.changed(card_names.new_decks(hand.decks), hand.remove, hand.add)
        if hand.seed:
            order = card_names.shuffled(order, hand.seed)
    order = card_names.with_cut(order, hand.cut_at)
    if len(order) > card_names.MAX_CARDS:
        raise CannotDo(f"{len(order)} cards are too many", f"at most {card_names.MAX_CARDS}")
    return order
