"""What someone with a tap at the cable has, and what they can make of it.

    tap = Tap()
    tap.note(now, "host", data); tap.note(now, "device", answer)
    differs(one.frames(), other.frames())      # TAP-1: two orders of cards look the same
    differs_in_clear(one.frames(), other.frames())
    found(one.frames(), bodies), repeated(one.frames())      # TAP-2

Each function returns what it found, and nothing when the cable gives nothing away. The tap has no
key; what it is compared with (`bodies`, cards, published chains) a tester knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from firmware_protocol.messages.codec import Side
from firmware_protocol.messages.enums import FrameKind
from firmware_protocol.messages.limits import CARDS
from firmware_protocol.messages.shoe import CardRead
from firmware_protocol.tablelink.framing import Deframer, Frame, FrameDamage
from firmware_protocol.tablelink.plaintext import EventRecord, next_chain

BODY: Final = 24
"""Where the body of a record begins ..."""
HASHED: Final = 48
"""... and where its chain does: that is made of all before."""
CARD_AT: Final = BODY + 6
SALT_AT: Final = BODY + 13
_RANDOM: Final = slice(32, 40)
"""HELLO_RSP.random in its payload."""
_SEALED: Final = (FrameKind.DATA, FrameKind.HS1, FrameKind.HS2)
_SEALED_PAIRING: Final = (FrameKind.PAIR1, FrameKind.PAIR2, FrameKind.PAIR3)


class TappedBytes(Struct, frozen=True):
    """Bytes on the cable, and when."""

    at: int
    side: Side
    data: bytes


class TappedFrame(Struct, frozen=True):
    """A frame on the cable: complete at `at`, `size` bytes long with its COBS and its 0x00."""

    at: int
    side: Side
    frame: Frame
    size: int

    def clear(self) -> bytes:
        """What anyone can read of it, less what is drawn at random."""
        if self.frame.kind in (*_SEALED, *_SEALED_PAIRING):
            return self.frame.header()
        payload = bytearray(self.frame.payload)
        if self.frame.kind is FrameKind.HELLO_RSP:
            payload[_RANDOM] = bytes(8)
        return self.frame.header() + bytes(payload)

    def words(self) -> str:
        return f"{self.frame.kind.name} of {self.size} bytes from the {self.side} at {self.at} us"


class Tap:
    """All that crossed the cable, in order."""

    def __init__(self) -> None:
        self.said: list[TappedBytes] = []

    def note(self, at: int, side: Side, data: bytes) -> None:
        if data:
            self.said.append(TappedBytes(at, side, data))

    def frames(self, since: int = 0) -> list[TappedFrame]:
        """The frames from that moment on. Damaged ones are no part of it."""
        deframers = {"host": Deframer(), "device": Deframer()}
        return [
            TappedFrame(one.at, one.side, heard, len(heard.encode()))
            for one in self.said
            for heard in deframers[one.side].feed(one.data)
            if not isinstance(heard, FrameDamage) and one.at >= since
        ]


# --- two runs that differ in their cards only -----------------------------------------------


def first_difference(one: Sequence[TappedFrame], other: Sequence[TappedFrame]) -> str | None:
    """Where two runs look unlike: number, direction, kind, length or time of their frames. Times
    are those since the first frame, and compared to the microsecond."""
    if len(one) != len(other):
        return f"{len(one)} frames, and {len(other)}"
    for ours, theirs in zip(one, other, strict=True):
        seen = [
            (tapped.side, tapped.frame.kind, tapped.size, tapped.at - run[0].at)
            for tapped, run in ((ours, one), (theirs, other))
        ]
        if seen[0] != seen[1]:
            return f"{ours.words()}, and {theirs.words()}"
    return None


def first_clear_difference(one: Sequence[TappedFrame], other: Sequence[TappedFrame]) -> str | None:
    """Where two runs say something else in clear. Session ids and serial numbers belong to it: let
    the runs be of one device, or of two that were made alike."""
    for ours, theirs in zip(one, other, strict=False):
        if ours.clear() != theirs.clear():
            return f"{ours.words()}: {ours.clear().hex()}, and {theirs.clear().hex()}"
    return None


# --- one run and what was drawn in it -------------------------------------------------------


def find_secrets(
    tapped: Iterable[TappedFrame], secrets: Iterable[bytes], window: int = 8
) -> list[str]:
    """The pieces of `secrets`, `window` bytes each, that are in some payload.

    Pieces of few different bytes are let go: zeros are everywhere. A short window finds pieces by
    chance: with 4 bytes, one in 4 billion for each pair of places.
    """
    pieces = {piece for secret in secrets for piece in _pieces(secret, window)}
    return [
        f"{payload[at : at + window].hex()} in {one.words()}"
        for one in tapped
        for payload in (one.frame.payload,)
        for at in range(len(payload) - window + 1)
        if payload[at : at + window] in pieces
    ]


def _pieces(secret: bytes, window: int) -> Iterator[bytes]:
    for at in range(len(secret) - window + 1):
        piece = secret[at : at + window]
        if len(set(piece)) > window // 2:
            yield piece


def repeated_ciphertexts(tapped: Iterable[TappedFrame]) -> list[str]:
    """Ciphertexts that came more than once."""
    seen = Counter(one.frame.payload for one in tapped if one.frame.kind in _SEALED)
    return [f"{payload.hex()}, {times} times" for payload, times in seen.items() if times > 1]


def secrets_of(records: Iterable[EventRecord]) -> list[bytes]:
    """What must not be found: body and chain of each record."""
    return [record.encode()[BODY:] for record in records]


# --- a chain that was published before the card was turned ----------------------------------


def matching_cards(record: EventRecord, previous: bytes, salts: Iterable[bytes]) -> set[int]:
    """The cards that explain the record's chain, if its salt were one of `salts`.

    Of the record all is taken as known but card and salt, which is more than anyone has.
    """
    if not isinstance(record.event, CardRead):
        return set()
    hashed = bytearray(record.encode()[:HASHED])
    fit = set()
    for salt in salts:
        hashed[SALT_AT : SALT_AT + len(salt)] = salt
        for card in range(CARDS):
            hashed[CARD_AT] = card
            if next_chain(previous, bytes(hashed)) == record.chain:
                fit.add(card)
    return fit
