"""A stretch of a record as the lines of a timeline: when, who, what, and how cards were read.

A line shows a card's face only if the record shows it face up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import DeviceCursor, Record
from controller.audit.format.table_entries import DISK_FULL, NOT_RECORDED
from controller.audit.index import NOT_UNDERSTOOD
from controller.audit.text.records import RecordText, record_text
from controller.audit.text.times import format_clock, stamp
from controller.errors import printable
from controller.procedure.model.effects import Effect, Stations
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    CardEntered,
    ErrorCardDrawn,
    ErrorCardExposed,
    FaceUpCardFound,
    HoleDealt,
    HoleRevealed,
)
from controller.procedure.prompts import CHOICES, WHAT, AmountFormat
from controller.rules.cards import DECK, Card

FACE_DOWN: Final = -1
"""The card of a line whose card lies face down."""
_UNSEEN: Final = (HoleDealt, ErrorCardDrawn, CardBurned)
"""Events of cards whose face is not seen."""
_SHOWS: Final = (CardDrawn, HoleRevealed, CardEntered, FaceUpCardFound, ErrorCardExposed)
_HIDES: Final = (HoleDealt, ErrorCardDrawn)
_NEAR: Final = 4
"""Maximum of records between the reading of a card and its event."""


class CardReading(Struct, frozen=True):
    """How the shoe read a card that now lies face up."""

    confidence: int
    alternative: Card
    """The second most likely card; -1: none."""
    pos: int
    """Its position in the shoe."""


class TimelineLine(Struct, frozen=True):
    """One record."""

    seq: int
    utc: int
    time: str
    """Time of day, UTC."""
    stamp: str
    """ISO 8601, to find the moment in a video."""
    clock: str
    """The reported quality of the clock: synced, unsynced, unknown."""
    pause: float
    """Seconds since the previous record."""
    round: int
    kind: str
    role: str
    who: str
    seat: int
    what: str
    facts: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    lit: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """The buttons that are enabled after this record, by seat."""
    refused: str = ""
    """Why it was refused."""
    problem: str = ""
    card: Card | None = None
    """The card that came; FACE_DOWN if it lies face down."""
    to: int = -1
    """The seat that got it; 0: the dealer; -1: unknown, or no card came."""
    reader: CardReading | None = None
    cursor: str = ""
    """Its position in the log of the device."""
    cause: int = 0
    quiet: bool = False
    """It is about running the record or the table, or repeats another line."""
    look: bool = False
    """A user accessed the record."""


def timeline_lines(
    records: Sequence[Record],
    money: AmountFormat,
    seats: Mapping[tuple[int, Card], int] | None = None,
    problems: Mapping[int, str] | None = None,
) -> list[TimelineLine]:
    """The lines of consecutive records.

    `seats` has the seat of a card by the seq of its record, `problems` the problem of a record.
    """
    texts = [record_text(record, money) for record in records]
    readings, repeated = _readings(records, texts)
    found = []
    before = 0
    for record, text in zip(records, texts, strict=True):
        line = _line(record, text, before or record.utc)
        problem = (problems or {}).get(record.seq, "")
        found.append(
            replace(
                line,
                to=-1 if line.card is None else (seats or {}).get((record.seq, line.card), -1),
                reader=readings.get(record.seq),
                problem=problem,
                quiet=not problem and (line.quiet or record.seq in repeated),
            )
        )
        before = record.utc
    return found


def timeline_line(record: Record, money: AmountFormat) -> TimelineLine:
    """The line of a single record."""
    return _line(record, record_text(record, money), 0)


def _line(record: Record, text: RecordText, before: int) -> TimelineLine:
    cursor = record.cursor
    return TimelineLine(
        record.seq,
        record.utc,
        format_clock(record.utc),
        stamp(record.utc),
        record.clock,
        (record.utc - before) / 1e6,
        record.round,
        record.kind,
        record.by.role,
        printable(record.by.name),
        record.by.seat,
        text.what,
        text.facts,
        text.prompts,
        _enabled(text.effects),
        text.refused,
        card=_card(text),
        cursor="" if cursor is None else _place(cursor),
        cause=record.cause,
        quiet=text.quiet,
        look=text.access,
    )


# --- cards ------------------------------------------------------------------------------------


def _card(text: RecordText) -> Card | None:
    event = text.event
    if text.refused:
        return None
    if isinstance(event, _HIDES):
        return FACE_DOWN
    if isinstance(event, _SHOWS) and event.card in DECK:
        return event.card
    return None


def _enabled(effects: tuple[Effect, ...]) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(
        (seat, tuple(CHOICES.get(one, one) for one in choices))
        for effect in effects
        if isinstance(effect, Stations)
        for seat, choices in effect.armed
    )


class _DeviceCard(Struct, frozen=True):
    """A device's record about a card."""

    what: str = ""
    card: Card = -1
    confidence: int = 0
    alternative: Card = -1
    pos: int = 0
    discarded: bool = False


def _readings(
    records: Sequence[Record], texts: Sequence[RecordText]
) -> tuple[dict[int, CardReading], set[int]]:
    """The readings of cards, by the seq of the card's event; and the seqs of the records that
    only repeat one."""
    found: dict[int, CardReading] = {}
    repeated: set[int] = set()
    for index, record in enumerate(records):
        read = _device_card(record)
        if read is None:
            continue
        following = texts[index + 1 : index + 1 + _NEAR]
        unseen = any(isinstance(text.event, _UNSEEN) for text in following)
        if read.what == "ShoeCardRead" and not read.discarded and unseen:
            repeated.add(record.seq)
        if read.what != "CardSeen" or read.card not in DECK:
            continue
        # The event is recorded together with the reading, mostly just after it.
        near = range(max(0, index - _NEAR), min(len(records), index + _NEAR + 1))
        for at in sorted(near, key=lambda at: (at < index, abs(at - index))):
            seq = records[at].seq
            if seq not in found and _card(texts[at]) == read.card:
                other = read.alternative if read.alternative in DECK else -1
                found[seq] = CardReading(read.confidence, other, read.pos)
                repeated.add(record.seq)
                break
    return found, repeated


def _device_card(record: Record) -> _DeviceCard | None:
    if record.kind != "device":
        return None
    try:
        return msgspec.json.decode(record.data, type=_DeviceCard)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _place(cursor: DeviceCursor) -> str:
    return f"{printable(cursor.device)} {cursor.epoch}/{cursor.seq}"


_OTHERS: Final = {
    NOT_UNDERSTOOD: "record not understood",
    "clock": "clock set",
    "tail": "write cut off",
    "unwitnessed": "not witnessed",
    DISK_FULL: "disk full",
    NOT_RECORDED: "entries not recorded",
}
_PROBLEMS: Final = WHAT | _OTHERS


def problem_words(name: str) -> str:
    """A problem of the index as text; an unknown name is quoted."""
    return _PROBLEMS.get(name) or printable(name).replace("_", " ")
