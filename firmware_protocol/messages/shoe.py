"""Messages of the shoe. Generated from messages.toml by firmware_protocol.generate. Not to be
edited."""

from typing import ClassVar

from firmware_protocol.messages import codec
from firmware_protocol.messages.codec import Command, Event, Reply, Spec
from firmware_protocol.messages.enums import (
    CardFlags,
    DeckKind,
    DeviceClass,
    JamCode,
    LockState,
    ReadWhy,
)


class CardRead(Event, frozen=True, gc=False):
    """A card has left the shoe and was read. Its fields fill the body."""

    shoe: int
    """Number of its loading, as in LOADED; 0 before the first."""
    pos: int
    """1 for the first card of the loading, then one more for each card that leaves the shoe, read
    or not, the cut card included."""
    card: int
    """The card."""
    confidence: int
    """How sure the reader is, percent."""
    alternative: int
    """Second candidate; 0xFE: no other candidate."""
    flags: CardFlags
    """What was odd."""
    dwell: int
    """Milliseconds that the card was over the reader; 65535 for longer."""
    back: int
    """The maker's number of the card's back; 0 not recognised."""
    salt: bytes
    """Random, drawn for this record alone; without it the chain would reveal the card."""

    SPEC: ClassVar = Spec(
        "CARD_READ",
        "<IHBBBBHB11s",
        "shoe pos card confidence alternative flags dwell back salt",
        codec.whole("pos", 1, 65535),
        codec.whole("card", 0, 51),
        codec.whole("confidence", 0, 100),
        codec.whole("alternative", 0, 51, (0x40, 0xFE)),
        codec.some_of("flags", CardFlags),
        codec.exactly("salt", 11),
        secret=True,
        ID=0x10,
        CLASS=DeviceClass.SHOE,
    )


class CardRetracted(Event, frozen=True, gc=False):
    """A card that had been reported went back into the shoe."""

    pos: int
    """Its position; the next card out has this position again."""

    SPEC: ClassVar = Spec(
        "CARD_RETRACTED", "<H", "pos", codec.whole("pos", 1, 65535), ID=0x11, CLASS=DeviceClass.SHOE
    )


class ReadFail(Event, frozen=True, gc=False):
    """A card has left the shoe and was not read."""

    pos: int
    """Its position."""
    why: ReadWhy
    """Why."""
    flags: CardFlags
    """DOUBLE_FEED, CAME_FIRST and CAME_SECOND only."""

    SPEC: ClassVar = Spec(
        "READ_FAIL",
        "<HBB",
        "pos why flags",
        codec.whole("pos", 1, 65535),
        codec.one_of("why", ReadWhy),
        codec.some_of("flags", CardFlags),
        ID=0x12,
        CLASS=DeviceClass.SHOE,
    )


class CutCard(Event, frozen=True, gc=False):
    """The cut card has left the shoe."""

    pos: int
    """Its position."""

    SPEC: ClassVar = Spec(
        "CUT_CARD", "<H", "pos", codec.whole("pos", 1, 65535), ID=0x13, CLASS=DeviceClass.SHOE
    )


class Loaded(Event, frozen=True, gc=False):
    """Cards were put in and the cover closed. Positions start again."""

    shoe: int
    """Number of this loading, one more than the last, stored over restarts."""
    decks: int
    """Decks as set at the shoe; 0 unknown."""
    count: int
    """Cards as weighed or counted; 0 unknown."""
    shuffle: int
    """Number of the shuffle as read from the cassette; 0 unknown."""
    kind: DeckKind
    """Kind of the decks as set at the shoe."""

    SPEC: ClassVar = Spec(
        "LOADED",
        "<IBHIB",
        "shoe decks count shuffle kind",
        codec.whole("shoe", 1, 0xFFFFFFFF),
        codec.one_of("kind", DeckKind),
        ID=0x14,
        CLASS=DeviceClass.SHOE,
    )


class Cover(Event, frozen=True, gc=False):
    """The cover was opened or closed."""

    open: bool
    """1 opened, 0 closed."""

    SPEC: ClassVar = Spec(
        "COVER", "<B", "open", codec.truth("open"), ID=0x15, CLASS=DeviceClass.SHOE
    )


class ShoeJam(Event, frozen=True, gc=False):
    """A jam in the shoe started or ended."""

    code: JamCode
    """Where."""

    SPEC: ClassVar = Spec(
        "SHOE_JAM", "<B", "code", codec.one_of("code", JamCode), ID=0x16, CLASS=DeviceClass.SHOE
    )


class LockReply(Reply, frozen=True, gc=False):
    """Returns the state of the lock."""

    state: LockState
    """What it is."""

    SPEC: ClassVar = Spec(
        "LOCK_REPLY",
        "<B",
        "state",
        codec.one_of("state", LockState),
        ID=0xD0,
        CLASS=DeviceClass.SHOE,
    )


class RereadReply(Reply, frozen=True, gc=False):
    """Returns the record."""

    record: bytes
    """The plaintext of the event, just as it was sent."""

    SPEC: ClassVar = Spec(
        "REREAD_REPLY",
        "<56s",
        "record",
        codec.exactly("record", 56),
        secret=True,
        ID=0xD1,
        CLASS=DeviceClass.SHOE,
        SIZE=120,
    )


class Lock(Command, frozen=True, gc=False):
    """Locks the shoe or opens it. Refused UNSUPPORTED without LOCK; OPEN is refused NOT_NOW while
    the ring is full."""

    state: LockState
    """What it shall be."""

    SPEC: ClassVar = Spec(
        "LOCK",
        "<B",
        "state",
        codec.one_of("state", LockState),
        ID=0x50,
        CLASS=DeviceClass.SHOE,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=LockReply,
    )


class Reread(Command, frozen=True, gc=False):
    """Requests a record again, acknowledged or not. Needs no RESUME."""

    epoch: int
    """The ring."""
    seq: int
    """The record."""

    SPEC: ClassVar = Spec(
        "REREAD",
        "<II",
        "epoch seq",
        codec.whole("epoch", 1, 0xFFFFFFFF),
        codec.whole("seq", 1, 0xFFFFFFFF),
        ID=0x51,
        CLASS=DeviceClass.SHOE,
        IDEMPOTENT=True,
        DEADLINE_MS=500,
        REPLY=RereadReply,
    )
