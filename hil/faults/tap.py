"""A tap on the cable: records its frames and searches them for information about cards.

    tap = Tap()
    tap.note(now, "host", data); tap.note(now, "device", answer)
    first_difference(one.frames(), other.frames())    # TAP-1: two orders of cards look the same
    first_clear_difference(one.frames(), other.frames())
    find_secrets(one.frames(), secrets), repeated_ciphertexts(one.frames())    # TAP-2

Each function returns what it found; an empty result means that the cable reveals nothing. The tap
has no key. A tester supplies the secrets, cards and published chains to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from firmware_protocol.messages import CARDS, CardRead, FrameKind, Side
from firmware_protocol.tablelink import Deframer, EventRecord, Frame, FrameDamage, next_chain

BODY: Final = 24
"""Offset of the body of a record."""
HASHED: Final = 48
"""Offset of its chain, which is the hash of all bytes before it."""
CARD_AT: Final = BODY + 6
SALT_AT: Final = BODY + 13
_RANDOM: Final = slice(32, 40)
"""HELLO_RSP.random in its payload."""
_SEALED: Final = (FrameKind.DATA, FrameKind.HS1, FrameKind.HS2)
_SEALED_PAIRING: Final = (FrameKind.PAIR1, FrameKind.PAIR2, FrameKind.PAIR3)


class TappedBytes(Struct, frozen=True):
    """Bytes on the cable at a time."""

    at: int
    side: Side
    data: bytes


class TappedFrame(Struct, frozen=True):
    """A frame that was complete at `at`. `size` includes COBS and the 0x00."""

    at: int
    side: Side
    frame: Frame
    size: int

    def clear(self) -> bytes:
        """The unencrypted bytes, with random fields set to zero."""
        if self.frame.kind in (*_SEALED, *_SEALED_PAIRING):
            return self.frame.header()
        payload = bytearray(self.frame.payload)
        if self.frame.kind is FrameKind.HELLO_RSP:
            payload[_RANDOM] = bytes(8)
        return self.frame.header() + bytes(payload)

    def describe(self) -> str:
        return f"{self.frame.kind.name} of {self.size} bytes from the {self.side} at {self.at} us"


class Tap:
    """All bytes that crossed the cable, in order."""

    def __init__(self) -> None:
        self.pieces: list[TappedBytes] = []

    def note(self, at: int, side: Side, data: bytes) -> None:
        if data:
            self.pieces.append(TappedBytes(at, side, data))

    def frames(self, since: int = 0) -> list[TappedFrame]:
        """The undamaged frames from that time on."""
        deframers = {"host": Deframer(), "device": Deframer()}
        return [
            TappedFrame(one.at, one.side, heard, len(heard.encode()))
            for one in self.pieces
            for heard in deframers[one.side].feed(one.data)
            if not isinstance(heard, FrameDamage) and one.at >= since
        ]


# --- two runs that differ in their cards only -----------------------------------------------


def first_difference(one: Sequence[TappedFrame], other: Sequence[TappedFrame]) -> str | None:
    """The first difference of two runs in number, direction, kind, length or time of their frames.
    Times count from the first frame and are compared to the microsecond."""
    if len(one) != len(other):
        return f"{len(one)} frames, and {len(other)}"
    for ours, theirs in zip(one, other, strict=True):
        seen = [
            (tapped.side, tapped.frame.kind, tapped.size, tapped.at - run[0].at)
            for tapped, run in ((ours, one), (theirs, other))
        ]
        if seen[0] != seen[1]:
            return f"{ours.describe()}, and {theirs.describe()}"
    return None


def first_clear_difference(one: Sequence[TappedFrame], other: Sequence[TappedFrame]) -> str | None:
    """The first difference of two runs in their unencrypted bytes. Session ids and serial numbers
    are compared too, so both runs need the same device or two identical ones."""
    for ours, theirs in zip(one, other, strict=False):
        if ours.clear() != theirs.clear():
            return f"{ours.describe()}: {ours.clear().hex()}, and {theirs.clear().hex()}"
    return None


# --- one run and what was drawn in it -------------------------------------------------------


def find_secrets(
    tapped: Iterable[TappedFrame], secrets: Iterable[bytes], window: int = 8
) -> list[str]:
    """The pieces of `secrets`, `window` bytes each, that occur in some payload.

    Pieces with few different bytes are skipped, since zeros are common. A short window finds pieces
    by chance: with 4 bytes, one in 4 billion for each pair of positions.
    """
    pieces = {piece for secret in secrets for piece in _pieces(secret, window)}
    return [
        f"{payload[at : at + window].hex()} in {one.describe()}"
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
    """Ciphertexts that were sent more than once."""
    seen = Counter(one.frame.payload for one in tapped if one.frame.kind in _SEALED)
    return [f"{payload.hex()}, {times} times" for payload, times in seen.items() if times > 1]


def secrets_of(records: Iterable[EventRecord]) -> list[bytes]:
    """The secret bytes of each record: its body and chain."""
    return [record.encode()[BODY:] for record in records]


# --- a published chain ----------------------------------------------------------------------


def matching_cards(record: EventRecord, previous: bytes, salts: Iterable[bytes]) -> set[int]:
    """The cards for which the record has its chain, if its salt is one of `salts`.

    All other fields of the record are assumed to be known, which is more than an attacker has.
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
