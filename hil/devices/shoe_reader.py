"""The reader of a shoe: what it makes of the cards that were pulled together, one or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from firmware_protocol.device.control import Draw
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.enums import CardFlags, ReadWhy
from firmware_protocol.messages.limits import CARD_CUT, CARD_UNREAD
from firmware_protocol.messages.shoe import CardRead, CutCard, ReadFail
from hil.devices import card_names
from hil.devices.shoe_cards import DrawnCard, ShoeContents

FIXED_SALT: Final = b"pepper&salt"
"""What salt-fixed puts into every record."""
SURE: Final = 99
UNSURE: Final = 55
DOUBTFUL: Final = 80
"""Below this confidence the reader names an alternative."""
MAX_DWELL_MS: Final = 65_535
"""CARD_READ's way to say: so long or longer."""

_FAILS: Final = {
    "unreadable": ReadWhy.UNREADABLE,
    "no_index": ReadWhy.NO_INDEX,
    "too_fast": ReadWhy.TOO_FAST,
    "foreign": ReadWhy.FOREIGN,
}


class ReaderFeatures(Struct, frozen=True):
    """What the reader can do, and whether it does."""

    backs: bool = True
    orientation: bool = True
    blind: bool = False


class CardPull(Struct, frozen=True):
    """What is over the reader, and how it came there."""

    draw: Draw
    cards: tuple[int, ...]
    since: int
    """When it came over the reader."""


def report(
    pulled: CardPull,
    inside: ShoeContents,
    eye: ReaderFeatures,
    salt: Callable[[], bytes],
    dwell_ms: int,
) -> list[tuple[Event, DrawnCard]]:
    """The event of each card, in the order of their positions, and what went out by it."""
    first, pos = pulled.cards[0], inside.pos + 1
    fail = _failure(pulled, eye)
    event: Event
    if fail is not None:
        event, seen = ReadFail(pos, fail), CARD_UNREAD
    elif first == CARD_CUT:
        event, seen = CutCard(pos), CARD_CUT
    else:
        seen = card_names.neighbour(first) if pulled.draw.read == "wrong" else first
        event = _read(pulled, inside, eye, salt, seen, dwell_ms)
    found: list[tuple[Event, DrawnCard]] = [(event, DrawnCard(first, seen, pos))]
    for more, card in enumerate(pulled.cards[1:], 1):
        # Nothing of it was seen: it lay under the other one.
        under = ReadFail(pos + more, ReadWhy.NO_INDEX)
        found.append((under, DrawnCard(card, CARD_UNREAD, pos + more)))
    return found


def back_of(inside: ShoeContents) -> int:
    """The maker's number of the back of the card that comes next."""
    return inside.back


def _failure(pulled: CardPull, eye: ReaderFeatures) -> ReadWhy | None:
    if eye.blind:
        return ReadWhy.READER
    why = _FAILS.get(pulled.draw.read)
    if why is ReadWhy.FOREIGN and not eye.backs:
        return None
    if why is not None and len(pulled.cards) > 1:
        return ReadWhy.DOUBLE
    return why


def _read(
    pulled: CardPull,
    inside: ShoeContents,
    eye: ReaderFeatures,
    salt: Callable[[], bytes],
    seen: int,
    dwell_ms: int,
) -> CardRead:
    draw = pulled.draw
    usual = UNSURE if draw.read == "low" else SURE
    confidence = usual if draw.confidence is None else draw.confidence
    flags = CardFlags(0)
    if inside.often(seen):
        flags |= CardFlags.DUPLICATE
    if len(pulled.cards) > 1:
        flags |= CardFlags.DOUBLE_FEED
    if draw.reversed and eye.orientation:
        flags |= CardFlags.REVERSED
    return CardRead(
        shoe=inside.loading,
        pos=inside.pos + 1,
        card=seen,
        confidence=confidence,
        alternative=card_names.neighbour(seen) if confidence < DOUBTFUL else CARD_UNREAD,
        flags=flags,
        dwell=min(dwell_ms, MAX_DWELL_MS),
        back=back_of(inside) if eye.backs else 0,
        salt=salt(),
    )
