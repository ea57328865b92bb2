"""A stretch of a record as lines: when, who, what, what came of it, and how sure anybody was.

Cards that lie face down have no face here: none is made of anything but what the record says of
cards that lie face up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import DeviceCursor, Record
from controller.audit.index import NOT_UNDERSTOOD
from controller.audit.replay import DecisionData, decode_decision, decode_refusal
from controller.audit.text import format_clock, format_time, is_access, is_quiet, record_lines
from controller.errors import printable
from controller.procedure.model.effects import Stations
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    CardEntered,
    ErrorCardDrawn,
    ErrorCardExposed,
    Event,
    FaceUpCardFound,
    HoleDealt,
    HoleRevealed,
)
from controller.procedure.prompts import CHOICES, WHAT, AmountFormat
from controller.rules.cards import DECK, Card
from controller.screens.review.view.queries import FaceUpCard

DOWN: Final = -1
"""A card that lies face down."""
_UNSEEN: Final = (HoleDealt, ErrorCardDrawn, CardBurned)
"""What the table makes of a card that nobody sees."""
_SHOWS: Final = (CardDrawn, HoleRevealed, CardEntered, FaceUpCardFound, ErrorCardExposed)
_HIDES: Final = (HoleDealt, ErrorCardDrawn)
_PROMPT: Final = "  > "
_NEAR: Final = 4
"""Records between a card's reading and what the table made of it."""


class CardReading(Struct, frozen=True):
    """How the shoe read a card that lies face up by now."""

    confidence: int
    alternative: Card
    """What it may have been instead; -1: nothing else."""
    pos: int
    """Its place in the shoe."""


class TimelineLine(Struct, frozen=True):
    """One record."""

    seq: int
    utc: int
    time: str
    """Of the day, in UTC."""
    stamp: str
    """As machines read it: for cameras."""
    clock: str
    """What the machine said of its clock: synced, unsynced, unknown."""
    pause: float
    """Seconds since the record before."""
    round: int
    kind: str
    role: str
    who: str
    seat: int
    what: str
    facts: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    lit: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Buttons that could be pressed from then on, seat by seat."""
    refused: str = ""
    """Why."""
    problem: str = ""
    card: Card | None = None
    """The card that came; DOWN where it lies face down."""
    to: int = -1
    """The seat that it came to; 0: the dealer; -1: it is not known, or no card came."""
    reader: CardReading | None = None
    cursor: str = ""
    """Where the device's own log has it."""
    cause: int = 0
    quiet: bool = False
    """It tells how the record was kept, or what stands on another line."""
    look: bool = False
    """Somebody looked at the record: nothing of the felt."""


def timeline(
    records: Sequence[Record],
    money: AmountFormat,
    faces: Mapping[int, Sequence[FaceUpCard]] | None = None,
    problems: Mapping[int, str] | None = None,
    before: int = 0,
) -> list[TimelineLine]:
    """The lines of these records. `before`: when the record before them was made; 0: unknown."""
    found = []
    readers, told = _readers(records)
    for record in records:
        line = line_of(record, money, before or record.utc)
        problem = (problems or {}).get(record.seq, "")
        there = (faces or {}).get(record.seq, ())
        seats = [face.seat for face in there if face.card == line.card]
        to = seats[0] if seats and line.card is not None else -1
        found.append(
            replace(
                line,
                to=to,
                reader=readers.get(record.seq),
                problem=problem,
                quiet=not problem and (line.quiet or record.seq in told),
            )
        )
        before = record.utc
    return found


def line_of(record: Record, money: AmountFormat, before: int) -> TimelineLine:
    """One record by itself."""
    what, *rest = [*record_lines(record, money), ""]
    said = _said(record)
    event = None if said is None else said[0]
    refused = "" if said is None else said[2]
    if refused:
        what = what.removesuffix(f" - refused: {printable(refused)}")
    fields = _fields(record)
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
        what,
        tuple(one.strip() for one in rest if one and not one.startswith(_PROMPT)),
        tuple(one.removeprefix(_PROMPT) for one in rest if one.startswith(_PROMPT)),
        () if said is None else _lit(said[1]),
        printable(refused),
        card=None if event is None or refused else _card(event),
        cursor="" if cursor is None else _place(cursor),
        cause=record.cause,
        quiet=is_quiet(record, fields),
        look=is_access(record, fields),
    )


def stamp(utc: int) -> str:
    """2027-01-15T08:00:00.123456Z; nothing where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(utc // 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{utc % 1_000_000:06d}Z"


def day_of(utc: int) -> str:
    return format_time(utc)[:10]


def clock_of(utc: int) -> str:
    return format_clock(utc)


# --- cards ------------------------------------------------------------------------------------


def _said(record: Record) -> tuple[Event, DecisionData | None, str] | None:
    """The event, what came of it, and why it was refused; None where it is none of ours."""
    try:
        if record.kind == "decision":
            made = decode_decision(record.data)
            return made.event, made, ""
        if record.kind == "refusal":
            down = decode_refusal(record.data)
            return down.event, None, down.why
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    return None


def _card(event: Event) -> Card | None:
    if isinstance(event, _HIDES):
        return DOWN
    if isinstance(event, _SHOWS) and event.card in DECK:
        return event.card
    return None


def _fields(record: Record) -> dict[str, Any]:
    """Of what devices, links and people do; of all else nothing is asked by its name."""
    if record.kind not in ("device", "link", "person"):
        return {}
    try:
        return msgspec.json.decode(record.data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _lit(made: DecisionData | None) -> tuple[tuple[int, tuple[str, ...]], ...]:
    armed = [one.armed for one in made.effects if isinstance(one, Stations)] if made else []
    return tuple(
        (seat, tuple(CHOICES.get(one, one) for one in choices))
        for seats in armed
        for seat, choices in seats
    )


class _SeenCard(Struct, frozen=True):
    """What the record says of how a card was read."""

    what: str
    card: Card = -1
    confidence: int = 0
    alternative: Card = -1
    pos: int = 0


def _readers(records: Sequence[Record]) -> tuple[dict[int, CardReading], set[int]]:
    """How cards were read, by the record of what the table made of each; and the records that say
    no more than that."""
    found: dict[int, CardReading] = {}
    told: set[int] = set()
    for index, record in enumerate(records):
        if _left_unseen(record) and any(map(_is_unseen, records[index + 1 : index + 1 + _NEAR])):
            told.add(record.seq)
        seen = _seen(record)
        if seen is None:
            continue
        # Written down together with what came of it, mostly just before.
        near = range(max(0, index - _NEAR), min(len(records), index + _NEAR + 1))
        for at in sorted(near, key=lambda at: (at < index, abs(at - index))):
            seq = records[at].seq
            if seq not in found and _shows(records[at], seen.card):
                other = seen.alternative if seen.alternative in DECK else -1
                found[seq] = CardReading(seen.confidence, other, seen.pos)
                told.add(record.seq)
                break
    return found, told


def _shows(record: Record, card: Card) -> bool:
    said = _said(record)
    return said is not None and not said[2] and _card(said[0]) == card


def _left_unseen(record: Record) -> bool:
    """A card left the shoe, and nobody saw it."""
    fields = _fields(record) if record.kind == "device" else {}
    return fields.get("what") == "ShoeCardRead" and not fields.get("discarded")


def _is_unseen(record: Record) -> bool:
    said = _said(record)
    return said is not None and isinstance(said[0], _UNSEEN)


def _seen(record: Record) -> _SeenCard | None:
    if record.kind != "device":
        return None
    try:
        found = msgspec.json.decode(record.data, type=_SeenCard)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if found.what == "CardSeen" and found.card in DECK else None


def _place(cursor: DeviceCursor) -> str:
    return f"{printable(cursor.device)} {cursor.epoch}/{cursor.seq}"


_OTHERS: Final = {
    NOT_UNDERSTOOD: "record not understood",
    "clock": "clock set",
    "tail": "write cut off",
    "unwitnessed": "not witnessed",
}
_WORDS: Final = WHAT | _OTHERS


def problem_words(name: str) -> str:
    """What our words do not have is told as the record has it."""
    return _WORDS.get(name) or printable(name).replace("_", " ")
