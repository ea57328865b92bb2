"""The decisions of one segment: replayed by the rules; those about face-down cards are collected.

Decisions of another software version cannot be replayed; they are counted by that version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.records import OpenedData, Record, RecordActor, encode
from controller.audit.format.validation import UNREADABLE, Strict, StrictBy, check_data
from controller.audit.replay import PROCEDURE, OtherProcedure, RecordReplay, source_hash
from controller.audit.verify.facts import CodeVersion, FaceDownDecision, SegmentFindings
from controller.audit.verify.hole_cards import (
    FACE_DOWN_EVENTS,
    LAID_EVENTS,
    hidden_card_error,
)
from controller.procedure.model.events import Actor

DECIDED: Final = frozenset(("decision", "refusal"))
_EVENT: Final = b'{"event":{"type":"'
_TYPE: Final = len(_EVENT)
_ACTOR: Final = b'"actor":'
_SEALED: Final = b'"sealed":"'
_SEAL: Final = 160
"""More bytes than there are from the sealed copy to the end."""
_BEGIN: Final = _TYPE + 4
_MOST_OPEN: Final = 256
"""More than the number of event types."""
_BEGINNINGS: Final = frozenset(name[:4].encode() for name in FACE_DOWN_EVENTS)


class _TypedEvent(Struct, frozen=True, gc=False):
    type: str


class _WithEvent(Struct, frozen=True, gc=False):
    event: _TypedEvent


_read_event: Final = msgspec.json.Decoder(_WithEvent).decode


class DecisionReplay:
    """Replays the decisions of a segment."""

    def __init__(
        self, record: Path, opened: OpenedData | None, found: SegmentFindings, *, replay: bool
    ) -> None:
        """Argument `opened` is the last boot before the segment."""
        self._replay: RecordReplay | None = RecordReplay(record) if replay else None
        self.asked = replay
        """Whether decisions are replayed."""
        self._found = found
        self._ours = source_hash(*PROCEDURE)
        self._opened = opened
        self._lost: CodeVersion | None = None
        """The version of a boot after which the state is unknown: later decisions cannot be
        replayed."""
        self._open: set[bytes] = set()
        """First bytes of decisions that are about no face-down card."""
        self.hidden: list[FaceDownDecision] = []
        self.again = self.unread = 0
        self.taken: Counter[CodeVersion] = Counter()

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

    def decided(self, row: Strict) -> str:
        """Check a decision or refusal. Raises WrongData."""
        code = self._lost or _other(self._opened, self._ours)
        if self._replay is not None and code is None:
            self.again += 1
            data = row.bytes
            return self._play(row, None) or _wrong_seal(row, data) or _wrong_actor(row, data)
        if code is not None:
            self.taken[code] += 1
        else:
            self.unread += 1
        data = row.bytes
        check_data(row.kind, data)
        return self._play(row, None) or _wrong_seal(row, data)

    def skipped(self, rows: Sequence[Strict], kinds: Sequence[str]) -> set[int]:
        """Return the indexes of decisions that are certainly about no face-down card.

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
        """Return whether the event is encoded plainly and is about no face-down card."""
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
            self.hidden.append(FaceDownDecision(self._found.at(), row.table, cursor, data))

    def refusal_error(self, row: Strict) -> str:
        """Return how a refusal reveals a face-down card; empty if it does not."""
        data = row.bytes
        return hidden_card_error(data) if event_type(data) in LAID_EVENTS else ""

    def _play(self, row: Strict, former: OpenedData | None) -> str:
        """Replay the record, unless an earlier one failed: later errors would mean nothing."""
        if self._replay is None:
            return ""
        place = self._found.place
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
    by = RecordActor(row.by.role, row.by.name, row.by.seat)
    place = (row.v, row.table, row.boot, row.seq, row.day, row.utc, row.mono, row.clock, row.round)
    return Record(*place, row.kind, by, row.sw, row.conf, row.proc, row.data)


def _wrong_seal(row: Strict, data: bytes) -> str:
    """Check that only a face-down card has a sealed copy."""
    sealed = row.kind == "decision" and _SEALED in data[-_SEAL:]
    if sealed and event_type(data) not in LAID_EVENTS:
        return f"something is sealed that does not belong to {event_type(data)}"
    return ""


def _wrong_actor(row: Strict, data: bytes) -> str:
    """Check that the record and its event name the same actor.

    For replayed decisions, which have one encoding.
    """
    if not data.startswith(_actor(row.by), data.find(_ACTOR) + len(_ACTOR)):
        return f"it is said to be by {row.by.role} {row.by.name}, its event by somebody else"
    return ""


@lru_cache(maxsize=64)
def _actor(by: StrictBy) -> bytes:
    return encode(Actor(by.role, by.name, by.seat))


def _other(opened: OpenedData | None, ours: str) -> CodeVersion | None:
    return None if opened is None or opened.code == ours else (opened.software, opened.code)
