"""A record as text for people: what happened, its facts and prompts. Face-down cards are left out.

Events, effects and fields of other software versions are quoted as they are in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from controller.audit.format.notes import NoteProblem, parse_checkpoint, parse_note
from controller.audit.format.records import (
    SHORT,
    ClockData,
    NoteData,
    OpenedData,
    Record,
    Snapshot,
    TailData,
)
from controller.audit.format.table_entries import DISK_FULL
from controller.audit.replay import decode_decision, decode_refusal
from controller.audit.text.device_events import is_access, is_quiet, sentence
from controller.audit.text.times import format_time, minutes_words
from controller.errors import printable
from controller.procedure.model.effects import Effect, Fact, Prompt
from controller.procedure.model.events import Actor, Event
from controller.procedure.prompts import (
    BETS,
    AmountFormat,
    MoneyFormat,
    card_words,
    detail,
    fact,
    say,
    way,
)
from controller.publish import event_words
from controller.rules.cards import DECK
from controller.rules.irregularities import Way

_HAPPENINGS: Final = ("device", "link", "person")
_AMOUNTS: Final = frozenset(("amount", "bank", "counted_again", "paid", "due"))
_HIDDEN_FIELDS: Final = frozenset(("actor", "commitment", "opening"))
_HIDDEN_OTHER: Final = frozenset(("opening", "commitment", "sealed"))
"""Fields of records of other software versions that are not shown."""
_EMPTY: Final[tuple[object, ...]] = ("", None, [], {})
_INVALID: Final = (LookupError, TypeError, ValueError, ArithmeticError)
"""Errors of a record whose fields are not those of its kind."""
_MAX_QUOTED: Final = 400
"""Characters that are quoted from a record."""


class PlainAmounts:
    """Amounts in the smallest unit, for a game that names no currency."""

    def amount(self, amount: int) -> str:
        return f"{amount:,} {'unit' if abs(amount) == 1 else 'units'}"


class _CurrencyTerms(Struct, frozen=True):
    currency: MoneyFormat | None = None


def currency_of(opened: OpenedData | None) -> AmountFormat:
    """How the game of a boot writes amounts."""
    try:
        terms = None if opened is None else msgspec.json.decode(opened.game, type=_CurrencyTerms)
    except msgspec.DecodeError:
        terms = None
    return PlainAmounts() if terms is None or terms.currency is None else terms.currency


class RecordText(Struct, frozen=True):
    """What one record says, in the order in which it is printed."""

    what: str
    facts: tuple[str, ...] = ()
    """What followed from it."""
    prompts: tuple[str, ...] = ()
    """What is to be done next."""
    refused: str = ""
    """Why it was refused; empty if it was not."""
    event: Event | None = None
    """The event of a decision or refusal of this version."""
    effects: tuple[Effect, ...] = ()
    quiet: bool = False
    """It is about running the record or the table, and not about the round."""
    access: bool = False
    """A user accessed the record."""


def record_text(record: Record, money: AmountFormat) -> RecordText:
    """The text of one record; `money` writes its amounts."""
    fields = _happening_fields(record)
    event, effects, refused = _decided(record)
    try:
        if event is not None:
            text = _decision(event, effects, money)
        elif record.kind in _KINDS:
            kind, text_of = _KINDS[record.kind]
            text = text_of(msgspec.json.decode(record.data, type=kind), record)
        else:
            said = sentence(record, fields) if fields else None
            text = _fields(record) if said is None else RecordText(_cut(said))
    except (msgspec.DecodeError, NoteProblem, *_INVALID):
        text = _fields(record)
    return RecordText(
        printable(text.what),
        tuple(map(printable, text.facts)),
        tuple(map(printable, text.prompts)),
        printable(refused),
        event,
        effects,
        is_quiet(record, fields),
        is_access(record, fields),
    )


# --- decisions --------------------------------------------------------------------------------


def _decided(record: Record) -> tuple[Event | None, tuple[Effect, ...], str]:
    """The event of a decision or refusal, its effects, and why it was refused."""
    try:
        if record.kind == "decision":
            made = decode_decision(record)
            return made.event, made.effects, ""
        if record.kind == "refusal":
            refused = decode_refusal(record)
            return refused.event, (), refused.why
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # of another software version, or corrupt
    return None, (), ""


def _decision(event: Event, effects: tuple[Effect, ...], money: AmountFormat) -> RecordText:
    return RecordText(
        _event(event, money),
        tuple(fact(one, money) for one in effects if isinstance(one, Fact)),
        tuple(say(one, money) for one in effects if isinstance(one, Prompt)),
    )


def _event(event: Event, money: AmountFormat) -> str:
    said = [word for name in event.__struct_fields__ for word in _detail(event, name, money)]
    words = event_words(type(event))
    return f"{words}: {', '.join(said)}" if said else words


def _detail(event: Event, name: str, money: AmountFormat) -> Iterator[str]:
    """What a field adds to the name of its event."""
    value = getattr(event, name)
    if name in _HIDDEN_FIELDS or value is None or value is False or value == "":
        return
    if name in _AMOUNTS:
        of = "" if name == "amount" else f"{name.replace('_', ' ')} "
        yield f"{of}{money.amount(value)}"
    elif name in _NAMED:
        yield from _NAMED[name](value)
    elif isinstance(value, Actor):
        yield f"with {value.name}"
    elif isinstance(value, Way):
        yield way(value.value)
    elif isinstance(value, str):
        yield detail(value)
    elif value:
        words = name.replace("_", " ")
        yield words if value is True else f"{words} {value}"


_NAMED: Final[dict[str, Callable[[Any], Iterator[str]]]] = {
    "card": lambda card: iter((card_words(card),) if card in DECK else ()),
    "seat": lambda seat: iter((f"seat {seat}",) if seat else ()),
    "hand": lambda hand: iter((f"hand {hand + 1}",) if hand > 0 else ()),
    "bet": lambda bet: iter((BETS.get(bet, bet),)),
}


# --- the other kinds --------------------------------------------------------------------------


_DEBUGGABLE: Final = "started with --debuggable: its user can read its memory"


def _opened(opened: OpenedData, record: Record) -> RecordText:
    sealed = f"hole cards are sealed to surveillance's key {opened.sealed_to}"
    torn = f", {opened.torn} bytes behind them were set aside" if opened.torn else ""
    return RecordText(
        f"the controller starts: {opened.software}, boot {record.boot}",
        (
            f"software {opened.sw[:SHORT]}, configuration {opened.conf[:SHORT]}",
            f"procedure {opened.proc[:SHORT]}, code {opened.code[:SHORT]}",
            *((sealed,) if opened.sealed_to else ()),
            *((_DEBUGGABLE,) if opened.debuggable else ()),
            f"it found {opened.last} records{torn}",
        ),
    )


def _checkpoint(data: NoteData, _: Record) -> RecordText:
    size = parse_checkpoint(parse_note(data.note).text).size
    return RecordText(f"signed: the first {size} records")


def _witnessed(data: NoteData, _: Record) -> RecordText:
    note = parse_note(data.note)
    checkpoint = parse_checkpoint(note.text)
    who = sorted({one.name for one in note.signatures} - {checkpoint.origin})
    return RecordText(f"countersigned: the first {checkpoint.size} records, by {', '.join(who)}")


def _clock(was: ClockData, _: Record) -> RecordText:
    two = (f"{was.two[0]} and {was.two[1]} said that it was right now",) if was.two else ()
    return RecordText(f"the clock was set: it would have been {format_time(was.utc_was)}", two)


def _tail(tail: TailData, _: Record) -> RecordText:
    who = f"accepted by {' and '.join(tail.two)}" if tail.two else "a write that was cut off"
    where = f"segment {tail.segment:08d}, offset {tail.offset}"
    return RecordText(
        f"{tail.size} bytes of {where} were set aside: {who}", (f"they are in {tail.file}",)
    )


def _fault(data: dict[str, Any], _: Record) -> RecordText:
    what, detail = data["what"], data["detail"]
    if what == DISK_FULL:
        left = f"{detail['bytes'] >> 10:,} KiB are left, {minutes_words(detail['minutes'])} of play"
        return RecordText(f"the next segment cannot be made: {detail['problem']}; {left}")
    return RecordText(f"fault: {what}: {_short(detail)}")


def _happening_fields(record: Record) -> dict[str, Any]:
    """The data of a record about devices, links or people; empty for other and corrupt records."""
    if record.kind not in _HAPPENINGS:
        return {}
    try:
        return msgspec.json.decode(record.data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _fields(record: Record) -> RecordText:
    """The kind, then the fields as they are in the record."""
    try:
        found = msgspec.json.decode(record.data)
    except (msgspec.DecodeError, RecursionError):
        return RecordText(f"{record.kind}: cannot be read")
    if not isinstance(found, dict):
        return RecordText(f"{record.kind}: {_short(found)}")
    event = found.get("event")
    if isinstance(event, dict):
        what = f"{event.get('type')} (in the words of other code): {_short(_plain(event))}"
        return RecordText(what, tuple(_short(_plain(one)) for one in found.get("effects", ())))
    what = found.pop("what", "")
    said = ", ".join(
        f"{name} {_short(_plain(value))}" for name, value in found.items() if value not in _EMPTY
    )
    return RecordText(f"{record.kind}: {what}{': ' if what and said else ''}{said}")


def _plain(value: object) -> object:
    """Remove what is not shown."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name not in _HIDDEN_OTHER}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _short(value: object) -> str:
    return _cut(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}..."


_KINDS: Final[dict[str, tuple[Any, Callable[[Any, Record], RecordText]]]] = {
    "snapshot": (Snapshot, lambda data, _: RecordText(f"segment {data.segment} begins")),
    "opened": (OpenedData, _opened),
    "certificate": (
        msgspec.Raw,
        lambda *_: RecordText("the table's key certifies the key of this boot"),
    ),
    "checkpoint": (NoteData, _checkpoint),
    "witnessed": (NoteData, _witnessed),
    "unwitnessed": (
        dict[str, int],
        lambda data, _: RecordText(
            f"no witness has countersigned since {format_time(data['since'])}"
        ),
    ),
    "clock": (ClockData, _clock),
    "tail": (TailData, _tail),
    "fault": (dict[str, Any], _fault),
    "note": (dict[str, str], lambda data, _: RecordText(f"note: {data['text']}")),
    "closed": (msgspec.Raw, lambda *_: RecordText("the controller ends in good order")),
}
"""For each of the other kinds: the type of its data, and what makes its text."""
