"""Cards that lay face down: what each commitment was opened with, over a whole record.

Events about them are read as FORMAT.md has them, so that those of other code are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from controller.audit.format.decode import UNREADABLE
from controller.audit.format.hole_cards import (
    COMMITMENT_SIZE,
    SEALED_TEXT,
    CardOpening,
    SealProblem,
    check,
)
from controller.audit.format.records import DeviceCursor
from controller.audit.read.retirements import FaceDownCard
from controller.audit.verify.finding import RecordFinding

FACE_DOWN_EVENTS: Final = frozenset(("HoleDealt", "ErrorCardDrawn", "HoleRevealed"))
"""Types of the events about a card that lies face down."""
LAID_EVENTS: Final = frozenset(("HoleDealt", "ErrorCardDrawn"))
"""Of them, those that lay one there."""
MAX_DRAWN: Final = 64
"""Cards drawn in error that may still become hole cards; a table has one."""


class FaceDownDecision(Struct, frozen=True):
    """A decision about a card that lay face down."""

    at: RecordFinding
    """Its place, and nothing found yet."""
    table: str
    cursor: DeviceCursor | None
    data: bytes


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


class _Commitment(Struct, frozen=True, gc=False):
    """The commitment that lies on the table."""

    round: int
    commitment: str
    cursor: DeviceCursor | None
    """None where it was drawn in a segment that is not here."""


class HoleCardTracker:
    """Follows commitments until their opening."""

    def __init__(self, whole: bool) -> None:
        """`whole`: the record's first segment is here."""
        self._whole = whole
        self._drawn: dict[str, DeviceCursor] = {}
        """Cards drawn in error: of each commitment, the device's record that it binds."""
        self._hole: _Commitment | None = None
        self._turned: _Commitment | None = None
        """The one that was turned over last."""
        self._begun = whole
        """A hole card was seen dealt, or none can lie there."""
        self.opened = 0
        """Commitments that were opened, and rightly."""
        self.unproven = 0
        """Cards that were turned over whose commitment is in a segment that is not here."""

    def gap(self) -> None:
        """Something of the record is not here: cards may have been dealt in it."""
        self._whole = self._begun = False
        self._hole = None

    def goes_on(self, hole: FaceDownCard | None, drawn: Iterable[FaceDownCard]) -> None:
        """With the cards that lie face down where the record begins."""
        if hole is not None:
            self._hole = _Commitment(hole.round, hole.commitment, hole.cursor)
        self._drawn = {one.commitment: one.cursor for one in drawn if one.cursor is not None}

    @property
    def down(self) -> tuple[FaceDownCard | None, tuple[FaceDownCard, ...]]:
        """The hole card dealt last, and the cards drawn in error that may still become one."""
        hole = self._hole
        last = None if hole is None else FaceDownCard(hole.round, hole.commitment, hole.cursor)
        return last, tuple(FaceDownCard(0, name, cursor) for name, cursor in self._drawn.items())

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
        self._hole = _Commitment(hidden.at.round, event.commitment, cursor)
        self._begun = True
        return ""

    def _revealed(self, hidden: FaceDownDecision, event: _CardEvent) -> str:
        hole = self._hole
        if event.card is UNSET:
            return "a hole card that was turned over and not told"
        if hole is None and not self._begun:
            hole = self._hole = _Commitment(hidden.at.round, "", None)
            self._begun = True
        if hole is None or hole.round != hidden.at.round:
            return "a hole card is turned over where no commitment lies on the table"
        # After a ruling on it the same card is turned over once more, and is no other one.
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


def refusal_error(data: bytes) -> str:
    """What a refusal tells of a card that lies face down, and must not."""
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
