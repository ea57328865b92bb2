"""Frames that were tapped from the cable, searched for information about cards.

    first_difference(one, other)    # TAP-1: two orders of cards look the same
    find_secrets(frames, secrets), repeated_ciphertexts(frames)    # TAP-2

Each function returns what it found; an empty result means that the cable reveals nothing. A tap has
no key. A tester supplies the secrets to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from firmware_protocol.messages import FrameKind, Side
from firmware_protocol.tablelink import EventRecord, Frame

BODY: Final = 24
"""Offset of the body of a record, which is followed by its chain."""
_SEALED: Final = (FrameKind.DATA, FrameKind.HS1, FrameKind.HS2)


class TappedFrame(Struct, frozen=True):
    """A frame that was complete at `at`. `size` includes COBS and the 0x00."""

    at: int
    side: Side
    frame: Frame
    size: int

    def describe(self) -> str:
        return f"{self.frame.kind.name} of {self.size} bytes from the {self.side} at {self.at} us"


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
