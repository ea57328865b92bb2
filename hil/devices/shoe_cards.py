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
    DeckKind,
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
SURE_DIRTY: Final = 85
"""Confidence of a dirty reader."""
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
    kind: int = DeckKind.FULL_52
    """Kind of the decks as set at the shoe."""
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

    def load(self, loading: int, request: Load, cards: list[int]) -> None:
        """Replace the cards: positions start at 1 again. Without `back`, a batch that was dealt
        from is followed by the other one."""
        other = OTHER_BACK if self.back == FIRST_BACK else FIRST_BACK
        self.back = request.back or (other if self.pos else self.back)
        self.loading, self.decks, self.pos = loading, request.decks, 0
        self.kind = kind_of(request.kind)
        self.cards = bytes(cards)
        self.out = []

    def is_duplicate(self, reported: int) -> bool:
        """Whether one more `reported` card exceeds the number of decks."""
        if not self.decks or reported == CARD_UNREAD:
            return False
        allowed = self.decks if card_names.in_deck(reported, DeckKind(self.kind)) else 0
        return sum(one.reported == reported for one in (*self.out, *self.held)) >= allowed

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


def kind_of(name: str) -> DeckKind:
    """The kind of deck that a request names."""
    return DeckKind[name.upper()]


def order_of(request: Load) -> list[int]:
    """The cards that a request loads, from the top."""
    cards = [card_names.number(name) for name in request.cards]
    decks = card_names.new_decks(request.decks, kind_of(request.kind))
    order = card_names.changed(cards or decks, request.remove, request.add)
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
    dirty: bool = False
    orders_doubles: bool = True
    """It notices which of two cards that come together is the first."""


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
    """The event of each card, in the order of their positions. Of two cards, one is read and the
    other is covered by it. They are in the order in which they came out, if the reader notices it;
    else the one that was read is the first."""
    order = _places(pull, reader)
    found: list[tuple[Event, DrawnCard]] = []
    for pos, (card, flags, covered) in enumerate(order, contents.pos + 1):
        fail = ReadWhy.NO_INDEX if covered else _failure(pull, reader)
        event: Event
        if fail is not None:
            event, reported = ReadFail(pos, fail, flags), CARD_UNREAD
        elif card == CARD_CUT:
            event, reported = CutCard(pos), CARD_CUT
        else:
            reported = card_names.neighbour(card) if pull.draw.read == "wrong" else card
            known = (reported, pos, flags)
            event = _read(pull, contents, reader, salt, known, dwell_ms)
        found.append((event, DrawnCard(card, reported, pos)))
    return found


def _places(pull: CardPull, reader: ReaderFeatures) -> list[tuple[int, CardFlags, bool]]:
    """Each card, the flags of a double pull, and whether the other card covers it."""
    cards = pull.cards
    if len(cards) == 1:
        return [(cards[0], CardFlags(0), False)]
    both = (
        (cards[0], CardFlags.DOUBLE_FEED | CardFlags.CAME_FIRST, pull.draw.second_read),
        (cards[1], CardFlags.DOUBLE_FEED | CardFlags.CAME_SECOND, not pull.draw.second_read),
    )
    if reader.orders_doubles:
        return list(both)
    unordered = [(card, CardFlags.DOUBLE_FEED, covered) for card, _, covered in both]
    return sorted(unordered, key=lambda one: one[2])


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
    known: tuple[int, int, CardFlags],
    dwell_ms: int,
) -> CardRead:
    """`known`: the card as reported, its position, and the flags of a double pull."""
    draw, (reported, pos, flags) = pull.draw, known
    sure = SURE_DIRTY if reader.dirty else SURE
    usual = UNSURE if draw.read == "low" else sure
    confidence = usual if draw.confidence is None else draw.confidence
    if contents.is_duplicate(reported):
        flags |= CardFlags.DUPLICATE
    if draw.reversed and reader.orientation:
        flags |= CardFlags.REVERSED
    return CardRead(
        shoe=contents.loading,
        pos=pos,
        card=reported,
        confidence=confidence,
        alternative=card_names.neighbour(reported) if confidence < DOUBTFUL else CARD_UNREAD,
        flags=flags,
        dwell=min(dwell_ms, MAX_DWELL_MS),
        back=back_of(contents) if reader.backs else 0,
        salt=salt(),
    )
