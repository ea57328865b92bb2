"""Hole cards over a whole record: each commitment is compared with its opening.

Events are decoded as FORMAT.md describes them, so those of other software versions are too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from controller.audit.format.hole_cards import (
    COMMITMENT_SIZE,
    SEALED_TEXT,
    CardOpening,
    SealProblem,
    check,
)
from controller.audit.format.records import DeviceCursor
from controller.audit.format.validation import UNREADABLE
from controller.audit.read.retirements import RetiredCard
from controller.audit.verify.facts import FaceDownDecision, RecordFinding

FACE_DOWN_EVENTS: Final = frozenset(("HoleDealt", "ErrorCardDrawn", "HoleRevealed"))
"""Types of the events about a face-down card."""
LAID_EVENTS: Final = frozenset(("HoleDealt", "ErrorCardDrawn"))
"""Those of them that put a card face down."""
MAX_DRAWN: Final = 64
"""Limit of cards drawn in error that may still become hole cards; a table has one."""


class _CardEvent(Struct, frozen=True, gc=False):
    type: str
    commitment: str = ""
    opening: str = ""
    card: int | UnsetType = UNSET


class _CardDecision(Struct, frozen=True, gc=False):
    event: _CardEvent
    sealed: str = ""


_SEALED: Final = re.compile(SEALED_TEXT)
"""Base64 of 104 bytes."""
_read: Final = msgspec.json.Decoder(_CardDecision).decode


class HoleCardTracker:
    """Follows commitments until they are opened."""

    def __init__(self, whole: bool) -> None:
        """Argument `whole` is true if the record's first segment exists."""
        self._whole = whole
        self._drawn: dict[str, DeviceCursor] = {}
        """Cards drawn in error: the device cursor that each commitment binds."""
        self._hole: RetiredCard | None = None
        self._turned: RetiredCard | None = None
        """The card that was turned over last."""
        self._begun = whole
        """Whether the hole card is known: one was dealt, or none can be on the table."""
        self.opened = 0
        """Number of commitments that were opened correctly."""
        self.unproven = 0
        """Number of cards turned over whose commitment is in a missing segment."""

    def gap(self) -> None:
        """A part of the record is missing: cards may have been dealt in it."""
        self._whole = self._begun = False
        self._hole = None

    def start_with(self, hole: RetiredCard | None, drawn: Iterable[RetiredCard]) -> None:
        """Start with the cards that lie face down before the first segment."""
        self._hole = hole or self._hole
        self._drawn = {one.commitment: one.cursor for one in drawn if one.cursor is not None}

    @property
    def down(self) -> tuple[RetiredCard | None, tuple[RetiredCard, ...]]:
        """The hole card dealt last, and the cards drawn in error that may still become one."""
        return self._hole, tuple(
            RetiredCard(0, name, cursor) for name, cursor in self._drawn.items()
        )

    def take(self, hidden: FaceDownDecision) -> list[RecordFinding]:
        try:
            said = _read(hidden.data)
        except UNREADABLE as problem:
            return [replace(hidden.at, what=f"a card face down that cannot be read: {problem}")]
        if said.event.type == "HoleRevealed":
            wrong = self._revealed(hidden, said.event)
        else:
            wrong = self._laid(hidden, said)
        return [replace(hidden.at, what=wrong)] if wrong else []

    def _laid(self, hidden: FaceDownDecision, said: _CardDecision) -> str:
        event, cursor = said.event, hidden.cursor
        wrong = _told(event)
        if not wrong and not _is_commitment(event.commitment):
            wrong = f"{event.type} without a commitment: nothing binds its card"
        if wrong:
            return wrong
        sealed = _SEALED.fullmatch(said.sealed) is not None and cursor is not None
        if event.type == "ErrorCardDrawn":
            if not sealed or cursor is None:
                return "a card drawn in error without its cursor or its sealed opening"
            self._drawn[event.commitment] = cursor
            if len(self._drawn) > MAX_DRAWN:
                del self._drawn[next(iter(self._drawn))]
            return ""
        if not sealed:
            cursor = self._drawn.pop(event.commitment, None)
            if cursor is None and self._whole:
                return "a hole card without its cursor or its sealed opening"
        self._hole = RetiredCard(hidden.at.round, event.commitment, cursor)
        self._begun = True
        return ""

    def _revealed(self, hidden: FaceDownDecision, event: _CardEvent) -> str:
        hole = self._hole
        if event.card is UNSET:
            return "a hole card that was turned over and not told"
        if hole is None and not self._begun:
            hole = self._hole = RetiredCard(hidden.at.round, "", None)
            self._begun = True
        if hole is None or hole.round != hidden.at.round:
            return "a hole card is turned over where no commitment lies on the table"
        # After a ruling the same card may be turned over again.
        again, self._turned = hole is self._turned, hole
        if hole.cursor is None:
            self.unproven += not again
            return ""
        try:
            opening = CardOpening.of_hex(event.opening)
            check(opening, hidden.table, hole.cursor, hole.commitment, event.card)
        except SealProblem as problem:
            return f"the hole card is not the one that was dealt: {problem}"
        self.opened += not again
        return ""


def hidden_card_error(data: bytes) -> str:
    """Return how the data of a refusal reveals a face-down card; empty if it does not."""
    try:
        return _told(_read(data).event)
    except UNREADABLE as problem:
        return f"a card face down that cannot be read: {problem}"


def _told(event: _CardEvent) -> str:
    told = event.card is not UNSET or event.opening
    return f"{event.type} tells the card that lies face down" if told else ""


def _is_commitment(text: str) -> bool:
    digits = set(text) <= set("0123456789abcdef")
    return digits and len(text) == 2 * COMMITMENT_SIZE
