"""The reader of a shoe: the event that it makes of each card in a pull of one card or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from firmware_protocol.device import Draw
from firmware_protocol.messages import (
    CARD_CUT,
    CARD_UNREAD,
    CardFlags,
    CardRead,
    CutCard,
    Event,
    ReadFail,
    ReadWhy,
)
from hil.devices import card_names
from hil.devices.shoe_cards import DrawnCard, ShoeContents

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
