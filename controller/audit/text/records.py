"""A record in words, for people: when, who, what, and what came of it. Nothing that lies face down.

What our words do not have (the events of other code) is told as it stands in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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
from controller.audit.replay import decode_decision, decode_refusal
from controller.audit.text.device_events import sentence
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

_AMOUNTS: Final = frozenset(("amount", "bank", "counted_again", "paid", "due"))
_UNTOLD: Final = frozenset(("actor", "commitment", "opening"))
_NOT_TOLD: Final = frozenset(("opening", "commitment", "sealed"))
"""Of records of other code: what is for the record, not for people."""
_EMPTY: Final[tuple[object, ...]] = ("", None, [], {})
"""Fields that say nothing."""
_NOT_ITS_NAME: Final = (LookupError, TypeError, ValueError, ArithmeticError)
"""What comes of a record that has not what its name says."""
_MOST: Final = 400
"""Characters of what is told as it stands."""


class PlainAmounts:
    """Amounts of a game that does not say how they are written: of the smallest unit that it
    has."""

    def amount(self, amount: int) -> str:
        return f"{amount:,} {'unit' if abs(amount) == 1 else 'units'}"


class _CurrencyTerms(Struct, frozen=True):
    currency: MoneyFormat | None = None


def currency_of(opened: OpenedData | None) -> AmountFormat:
    """How the game that a boot deals writes amounts."""
    try:
        terms = None if opened is None else msgspec.json.decode(opened.game, type=_CurrencyTerms)
    except msgspec.DecodeError:
        terms = None
    return PlainAmounts() if terms is None or terms.currency is None else terms.currency


def format_time(utc: int) -> str:
    """A time of the record."""
    try:
        moment = datetime.fromtimestamp(utc // 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{utc} us"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{utc % 1_000_000:06d} UTC"


def format_clock(utc: int) -> str:
    """The time of day alone, in milliseconds."""
    whole = format_time(utc)
    return whole.partition(" ")[2][:12] if whole.endswith("UTC") else whole


def record_lines(record: Record, money: AmountFormat) -> Iterator[str]:
    """What happened, and below it what came of it."""
    tell = _KINDS.get(record.kind, _fields)
    try:
        found = list(tell(record, money))
    except (msgspec.DecodeError, NoteProblem, *_NOT_ITS_NAME):
        found = list(_fields(record, money))
    for line in found:
        yield printable(line)


# --- decisions --------------------------------------------------------------------------------


def _decision(record: Record, money: AmountFormat) -> Iterator[str]:
    made = decode_decision(record.data)
    yield _event(made.event, money)
    yield from _effects(made.effects, money)


def _refusal(record: Record, money: AmountFormat) -> Iterator[str]:
    refused = decode_refusal(record.data)
    yield f"{_event(refused.event, money)} - refused: {refused.why}"


def _effects(effects: tuple[Effect, ...], money: AmountFormat) -> Iterator[str]:
    """Facts first: they have happened; prompts ask what is to be done next."""
    for effect in effects:
        if isinstance(effect, Fact):
            yield f"  {fact(effect, money)}"
    for effect in effects:
        if isinstance(effect, Prompt):
            yield f"  > {say(effect, money)}"


def _event(event: Event, money: AmountFormat) -> str:
    said = [word for name in event.__struct_fields__ for word in _detail(event, name, money)]
    words = event_words(type(event))
    return f"{words}: {', '.join(said)}" if said else words


def _detail(event: Event, name: str, money: AmountFormat) -> Iterator[str]:
    """What a field of an event adds to its name."""
    value = getattr(event, name)
    if name in _UNTOLD or value is None or value is False or value == "":
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


def _snapshot(record: Record, money: AmountFormat) -> Iterator[str]:
    yield f"segment {msgspec.json.decode(record.data, type=Snapshot).segment} begins"


def _opened(record: Record, money: AmountFormat) -> Iterator[str]:
    opened = msgspec.json.decode(record.data, type=OpenedData)
    yield f"the controller starts: {opened.software}, boot {record.boot}"
    yield f"  software {opened.sw[:SHORT]}, configuration {opened.conf[:SHORT]}"
    yield f"  procedure {opened.proc[:SHORT]}, code {opened.code[:SHORT]}"
    if opened.sealed_to:
        yield f"  hole cards are sealed to surveillance's key {opened.sealed_to}"
    torn = f", {opened.torn} bytes behind them were set aside" if opened.torn else ""
    yield f"  it found {opened.last} records{torn}"


def _certificate(record: Record, money: AmountFormat) -> Iterator[str]:
    yield "the table's key certifies the key of this boot"


def _checkpoint(record: Record, money: AmountFormat) -> Iterator[str]:
    note = parse_note(msgspec.json.decode(record.data, type=NoteData).note)
    yield f"signed: the first {parse_checkpoint(note.text).size} records"


def _witnessed(record: Record, money: AmountFormat) -> Iterator[str]:
    note = parse_note(msgspec.json.decode(record.data, type=NoteData).note)
    checkpoint = parse_checkpoint(note.text)
    who = sorted({one.name for one in note.signatures} - {checkpoint.origin})
    yield f"countersigned: the first {checkpoint.size} records, by {', '.join(who)}"


def _unwitnessed(record: Record, money: AmountFormat) -> Iterator[str]:
    since = msgspec.json.decode(record.data, type=dict[str, int])["since"]
    yield f"no witness has countersigned since {format_time(since)}"


def _clock(record: Record, money: AmountFormat) -> Iterator[str]:
    was = msgspec.json.decode(record.data, type=ClockData)
    yield f"the clock was set: it would have been {format_time(was.utc_was)}"
    if was.two:
        yield f"  {was.two[0]} and {was.two[1]} said that it was right now"


def _tail(record: Record, money: AmountFormat) -> Iterator[str]:
    tail = msgspec.json.decode(record.data, type=TailData)
    who = f"accepted by {' and '.join(tail.two)}" if tail.two else "a write that was cut off"
    where = f"segment {tail.segment:08d}, offset {tail.offset}"
    yield f"{tail.size} bytes of {where} were set aside: {who}"
    yield f"  they are in {tail.file}"


def _fault(record: Record, money: AmountFormat) -> Iterator[str]:
    found = msgspec.json.decode(record.data, type=dict[str, Any])
    yield f"fault: {found['what']}: {_short(found['detail'])}"


def _note(record: Record, money: AmountFormat) -> Iterator[str]:
    yield f"note: {msgspec.json.decode(record.data, type=dict[str, str])['text']}"


def _closed(record: Record, money: AmountFormat) -> Iterator[str]:
    yield "the controller ends in good order"


def _happening(record: Record, money: AmountFormat) -> Iterator[str]:
    """Of devices, links and people."""
    said = sentence(record, msgspec.json.decode(record.data, type=dict[str, Any]))
    if said is None:
        yield from _fields(record, money)
    else:
        yield _cut(said)


def _fields(record: Record, money: AmountFormat) -> Iterator[str]:
    """What it is, then its fields as they stand."""
    try:
        found = msgspec.json.decode(record.data)
    except (msgspec.DecodeError, RecursionError):
        yield f"{record.kind}: cannot be read"
        return
    if not isinstance(found, dict):
        yield f"{record.kind}: {_short(found)}"
        return
    event = found.get("event")
    if isinstance(event, dict):
        yield f"{event.get('type')} (in the words of other code): {_short(_plain(event))}"
        yield from (f"  {_short(_plain(effect))}" for effect in found.get("effects", ()))
        return
    what = found.pop("what", "")
    said = ", ".join(
        f"{name} {_short(_plain(value))}" for name, value in found.items() if value not in _EMPTY
    )
    yield f"{record.kind}: {what}{': ' if what and said else ''}{said}"


def _plain(value: object) -> object:
    """Without what is for the record only."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name not in _NOT_TOLD}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _short(value: object) -> str:
    return _cut(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


_Telling = Callable[[Record, AmountFormat], Iterator[str]]
_KINDS: Final[dict[str, _Telling]] = {
    "snapshot": _snapshot,
    "opened": _opened,
    "certificate": _certificate,
    "checkpoint": _checkpoint,
    "decision": _decision,
    "refusal": _refusal,
    "device": _happening,
    "link": _happening,
    "person": _happening,
    "witnessed": _witnessed,
    "unwitnessed": _unwitnessed,
    "clock": _clock,
    "tail": _tail,
    "fault": _fault,
    "note": _note,
    "closed": _closed,
}
