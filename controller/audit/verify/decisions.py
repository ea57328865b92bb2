"""The decisions of a record: replayed by the rules, and compared with their hole cards.

Decisions of another software version cannot be replayed; they are counted by that version. Hole
cards are compared over the whole record, each commitment with its opening. Their events are decoded
as FORMAT.md describes them, so those of other software versions are too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from controller.audit.errors import RecordProblem
from controller.audit.format.hole_cards import (
    COMMITMENT_SIZE,
    SEALED_TEXT,
    CardOpening,
    SealProblem,
    check,
)
from controller.audit.format.records import (
    DeviceCursor,
    OpenedData,
    Record,
    RecordActor,
    Snapshot,
    table_of,
)
from controller.audit.format.validation import UNREADABLE, Strict, StrictBy, check_data, too_large
from controller.audit.read.retirements import RetiredCard
from controller.audit.release import PROCEDURE, source_hash
from controller.audit.replay import OtherProcedure, RecordReplay
from controller.audit.verify.facts import (
    CodeVersion,
    FaceDownDecision,
    RecordFinding,
    SegmentFindings,
)

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


_COMMITMENT: Final = re.compile(f"[0-9a-f]{{{2 * COMMITMENT_SIZE}}}")
_SEALED_TEXT: Final = re.compile(SEALED_TEXT)
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
    def face_down(self) -> tuple[RetiredCard | None, tuple[RetiredCard, ...]]:
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
        wrong = _revealed_error(event)
        if not wrong and not _COMMITMENT.fullmatch(event.commitment):
            wrong = f"{event.type} without a commitment: nothing binds its card"
        if wrong:
            return wrong
        sealed = _SEALED_TEXT.fullmatch(said.sealed) is not None and cursor is not None
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
    """Returns how the data of a refusal reveals a face-down card; empty if it does not."""
    try:
        return _revealed_error(_read(data).event)
    except UNREADABLE as problem:
        return f"a card face down that cannot be read: {problem}"


def _revealed_error(event: _CardEvent) -> str:
    return (
        f"{event.type} tells the card that lies face down"
        if (event.card is not UNSET or event.opening)
        else ""
    )


DECIDED: Final = frozenset(("decision", "refusal"))
_EVENT: Final = b'{"event":{"type":"'
_TYPE: Final = len(_EVENT)
_BEGIN: Final = _TYPE + 4
_MOST_OPEN: Final = 256
"""More than the number of event types."""
_BEGINNINGS: Final = frozenset(name[:4].encode() for name in FACE_DOWN_EVENTS)


class _TypedEvent(Struct, frozen=True, gc=False):
    type: str


class _WithEvent(Struct, frozen=True, gc=False):
    event: _TypedEvent
    sealed: Any = None


class _ActingEvent(Struct, frozen=True, gc=False):
    actor: StrictBy


class _WithActor(Struct, frozen=True, gc=False):
    event: _ActingEvent


_read_actor: Final = msgspec.json.Decoder(_WithActor).decode
_read_event: Final = msgspec.json.Decoder(_WithEvent).decode


class DecisionReplay:
    """Replays the decisions of a segment."""

    def __init__(
        self, record: Path, said: Snapshot, found: SegmentFindings, *, replay: bool
    ) -> None:
        """Argument `said` is the snapshot of the segment."""
        self._table = table_of(said.origin)
        self._replay: RecordReplay | None = RecordReplay(record) if replay else None
        self.replays = replay
        """Whether decisions are replayed."""
        self._findings = found
        self._ours = source_hash(*PROCEDURE)
        self._opened = said.opened or None
        self._lost: CodeVersion | None = None
        """The version of a boot after which the state is unknown: later decisions cannot be
        replayed."""
        self._open: set[bytes] = set()
        """First bytes of decisions that are about no face-down card."""
        self.hidden: list[FaceDownDecision] = []
        self.again = self.unread = 0
        self.other_code: Counter[CodeVersion] = Counter()

    @property
    def known(self) -> bytes:
        """The current state as JSON; empty if it is unknown."""
        return b"" if self._replay is None else self._replay.known

    def begins(self, row: Strict) -> str:
        """Start with the segment's snapshot.

        Returns how the record contradicts the rules; empty if it does not. So do `opened` and
        `decided`.
        """
        return self._play(row, None)

    def opened(self, row: Strict, opened: OpenedData) -> str:
        """Start another boot, which may run another software version."""
        former, self._opened = self._opened, opened
        return self._play(row, former)

    def decided(self, row: Strict) -> tuple[str, str]:
        """Check a decision or refusal. Returns the fields that this software does not know, and
        what is wrong. Raises WrongData."""
        code = self._lost or _other(self._opened, self._ours)
        if self._replay is not None and code is None:
            self.again += 1
            data = row.bytes
            if self._opened is None:  # nothing says by what game it was decided
                check_data(row.kind, data, row.v)
            wrong = self._play(row, None) or _wrong_seal(row, data)
            return "", wrong or too_large(data)
        if code is not None:
            self.other_code[code] += 1
        else:
            self.unread += 1
        data = row.bytes
        unknown = check_data(row.kind, data, row.v)
        wrong = self._play(row, None) or _wrong_seal(row, data) or _wrong_actor(row, data)
        return unknown, wrong

    def skipped(self, rows: Sequence[Strict], kinds: Sequence[str]) -> set[int]:
        """Returns the indexes of decisions that are certainly about no face-down card.

        A fast check of the first bytes, for a run without replay. They are counted as not replayed.
        """
        open_ = self._open
        skipped = {
            at
            for at, (row, kind) in enumerate(zip(rows, kinds, strict=True))
            if kind in DECIDED and (bytes(row.data)[:_BEGIN] in open_ or self._is_open(row))
        }
        self.unread += len(skipped)
        return skipped

    def _is_open(self, row: Strict) -> bool:
        """Returns whether the event is encoded plainly and is about no face-down card."""
        begin = bytes(row.data)[:_BEGIN]
        name = begin[_TYPE:]
        hidden = not begin.startswith(_EVENT) or name in _BEGINNINGS or b"\\" in name
        if not hidden and len(self._open) < _MOST_OPEN:
            self._open.add(begin)
        return not hidden

    def collect_face_down(self, row: Strict) -> None:
        """Store the decision if it is about a face-down card."""
        data = row.bytes
        if data[:_BEGIN] in self._open or self._is_open(row):
            return
        if event_type(data) in FACE_DOWN_EVENTS:
            cursor = None if row.cursor is UNSET else row.cursor.as_kept()
            self.hidden.append(FaceDownDecision(self._findings.at(), self._table, cursor, data))

    def refusal_error(self, row: Strict) -> str:
        """Returns how a refusal reveals a face-down card; empty if it does not."""
        data = row.bytes
        return hidden_card_error(data) if event_type(data) in LAID_EVENTS else ""

    def _play(self, row: Strict, former: OpenedData | None) -> str:
        """Replay the record, unless an earlier one failed: later errors would mean nothing."""
        if self._replay is None:
            return ""
        place = self._findings.place
        try:
            self._replay.take(place, _as_record(row))
        except RecordProblem as problem:
            self._replay = None
            if isinstance(problem, OtherProcedure):
                self._lost = _other(former, self._ours) or _other(self._opened, self._ours)
            return "" if self._lost else problem.what.removeprefix(f"{place}: ")
        return ""


def event_type(data: bytes) -> str:
    """The type of the event in the `data` of a decision; empty if it has none."""
    try:
        return _read_event(data).event.type
    except UNREADABLE:
        return ""


def _as_record(row: Strict) -> Record:
    """The fields that the rules use; without the device's cursor."""
    by = RecordActor(row.who.role, row.who.name, row.who.seat)
    place = (row.v, row.boot, row.seq, row.utc, row.mono, row.clock, row.round)
    return Record(*place, row.kind, row.data, by)


def _wrong_seal(row: Strict, data: bytes) -> str:
    """Check that only a face-down card has a sealed copy."""
    if row.kind != "decision" or (b"seal" not in data and b"\\" not in data):
        return ""
    found = _read_event(data)
    if found.sealed is not None and found.event.type not in LAID_EVENTS:
        return f"something is sealed that does not belong to {found.event.type}"
    return ""


def _wrong_actor(row: Strict, data: bytes) -> str:
    """Check that a record of version 1 and its event name the same actor."""
    if row.v > 1:
        return ""
    try:
        actor = _read_actor(data).event.actor
    except UNREADABLE:
        actor = None
    if actor != row.who:
        return f"it is said to be by {row.who.role} {row.who.name}, its event by somebody else"
    return ""


def _other(opened: OpenedData | None, ours: str) -> CodeVersion | None:
    return None if opened is None or opened.code == ours else (opened.software, opened.code)
