"""The cards in a shoe, at its gate and outside, and the events that its reader makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from firmware_protocol.device import CannotDo, Draw, Load
from firmware_protocol.messages import (
    CARD_CUT,
    CARD_UNREAD,
    CardFlags,
    CardRead,
    CutCard,
    Event,
    JamCode,
    ReadFail,
    ReadWhy,
)
from hil.devices import card_names
from hil.devices.mechanism import PendingEvents

FIRST_BACK: Final = 1
OTHER_BACK: Final = 2
"""Backs of the two batches that alternate, unless a request names the back."""
FIXED_SALT: Final = b"pepper&salt"
"""The salt of every record with the break salt-fixed."""
SURE: Final = 99
UNSURE: Final = 55
DOUBTFUL: Final = 80
"""Below this confidence the reader names an alternative."""
MAX_DWELL_MS: Final = 65_535
"""The largest value of a 16-bit field; it means this long or longer."""

_FAILS: Final = {
    "unreadable": ReadWhy.UNREADABLE,
    "no_index": ReadWhy.NO_INDEX,
    "too_fast": ReadWhy.TOO_FAST,
    "foreign": ReadWhy.FOREIGN,
}


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


class ReaderFeatures(Struct, frozen=True):
    """What the reader can recognise, and whether it works."""

    backs: bool = True
    orientation: bool = True
    blind: bool = False


class CardPull(Struct, frozen=True):
    """The cards over the reader, and the request that moved them there."""

    draw: Draw
    cards: tuple[int, ...]
    since: int
    """When they came over the reader."""


def report(
    pull: CardPull,
    contents: ShoeContents,
    reader: ReaderFeatures,
    salt: Callable[[], bytes],
    dwell_ms: int,
) -> list[tuple[Event, DrawnCard]]:
    """The event of each card, in the order of their positions."""
    first, pos = pull.cards[0], contents.pos + 1
    fail = _failure(pull, reader)
    event: Event
    if fail is not None:
        event, reported = ReadFail(pos, fail), CARD_UNREAD
    elif first == CARD_CUT:
        event, reported = CutCard(pos), CARD_CUT
    else:
        reported = card_names.neighbour(first) if pull.draw.read == "wrong" else first
        event = _read(pull, contents, reader, salt, reported, dwell_ms)
    found: list[tuple[Event, DrawnCard]] = [(event, DrawnCard(first, reported, pos))]
    for more, card in enumerate(pull.cards[1:], 1):  # covered by the first card
        under = ReadFail(pos + more, ReadWhy.NO_INDEX)
        found.append((under, DrawnCard(card, CARD_UNREAD, pos + more)))
    return found


def back_of(contents: ShoeContents) -> int:
    """The maker's number of the back of the next card."""
    return contents.back


def _failure(pull: CardPull, reader: ReaderFeatures) -> ReadWhy | None:
    if reader.blind:
        return ReadWhy.READER
    why = _FAILS.get(pull.draw.read)
    if why is ReadWhy.FOREIGN and not reader.backs:
        return None
    if why is not None and len(pull.cards) > 1:
        return ReadWhy.DOUBLE
    return why


def _read(
    pull: CardPull,
    contents: ShoeContents,
    reader: ReaderFeatures,
    salt: Callable[[], bytes],
    reported: int,
    dwell_ms: int,
) -> CardRead:
    draw = pull.draw
    usual = UNSURE if draw.read == "low" else SURE
    confidence = usual if draw.confidence is None else draw.confidence
    flags = CardFlags(0)
    if contents.is_duplicate(reported):
        flags |= CardFlags.DUPLICATE
    if len(pull.cards) > 1:
        flags |= CardFlags.DOUBLE_FEED
    if draw.reversed and reader.orientation:
        flags |= CardFlags.REVERSED
    return CardRead(
        shoe=contents.loading,
        pos=contents.pos + 1,
        card=reported,
        confidence=confidence,
        alternative=card_names.neighbour(reported) if confidence < DOUBTFUL else CARD_UNREAD,
        flags=flags,
        dwell=min(dwell_ms, MAX_DWELL_MS),
        back=back_of(contents) if reader.backs else 0,
        salt=salt(),
    )
