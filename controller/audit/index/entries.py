"""What the index has of one record.

A card becomes a row only through an accepted event that shows its face, or through a fact about
cards that lie face up. What a refused event says of a card has not happened.

Other software than ours may record more, or otherwise: of a record that cannot be understood there
is a row, and nothing of what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from controller.audit.index.rows import Rows
from controller.procedure.model.effects import (
    BankCounted,
    Burned,
    Corrected,
    Discarded,
    Prompt,
    RoundOver,
    RoundVoid,
    Ruled,
    SeatDead,
    Settled,
    Tell,
    Told,
    Tucked,
    WagersLocked,
)
from controller.procedure.model.events import (
    CardDrawn,
    CardEntered,
    CardMisread,
    CardUnreadable,
    Double,
    ErrorCardExposed,
    FaceUpCardFound,
    HoleRevealed,
    Insure,
    Paid,
    Split,
    TableClosed,
    UnknownCardDrawn,
    WagerPlaced,
    Withdrawn,
)
from controller.procedure.model.holds import REFUSED, TAKEN

SqlInteger: TypeAlias = Annotated[int, Meta(ge=-(1 << 62), le=(1 << 62) - 1)]
"""SQLite can keep it, and the difference of two of them."""


class IndexedActor(Struct, gc=False):
    role: str
    name: str
    seat: SqlInteger = 0


class IndexedRecord(Struct, gc=False):
    day: str
    utc: SqlInteger
    round: SqlInteger
    kind: str
    by: IndexedActor
    data: msgspec.Raw
    cause: SqlInteger = 0


class IndexedEvent(Struct, gc=False):
    """Of any event."""

    type: str
    seat: SqlInteger = 0
    card: SqlInteger = -1
    bet: str = ""
    amount: SqlInteger | None = None
    second: IndexedActor | None = None


class IndexedEffect(Struct, gc=False):
    """Of any effect."""

    type: str
    round: SqlInteger = 0
    seat: SqlInteger = 0
    hand: SqlInteger = -1
    bet: str = ""
    outcome: str = ""
    stake: SqlInteger = 0
    returned: SqlInteger = 0
    why: str = ""
    card: SqlInteger = -1
    cards: tuple[SqlInteger, ...] = ()
    tell: str = ""
    count: SqlInteger = 0
    amount: SqlInteger = 0
    lamps: tuple[tuple[SqlInteger, str], ...] = ()
    who: str = ""
    what: str = ""
    way: str = ""
    by: str = ""
    second: str = ""
    total: SqlInteger = 0
    won: SqlInteger = 0
    bank: SqlInteger = 0
    paid: SqlInteger = 0
    due: SqlInteger = 0


class IndexedDecision(Struct, gc=False):
    event: IndexedEvent
    effects: tuple[IndexedEffect, ...]


class IndexedRefusal(Struct, gc=False):
    event: IndexedEvent
    id: str


class IndexedOther(Struct, gc=False):
    what: str = ""


read_record: Final = msgspec.json.Decoder(IndexedRecord).decode
read_made: Final = msgspec.json.Decoder(IndexedDecision).decode
read_turned_down: Final = msgspec.json.Decoder(IndexedRefusal).decode
read_what: Final = msgspec.json.Decoder(IndexedOther).decode
"""All of them raise what is in CANNOT_READ."""
CANNOT_READ: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


NOT_UNDERSTOOD: Final = "not_understood"
"""The problem that a record is which the index cannot read."""


def index_record(rows: Rows, segment: int, offset: int, seq: int, data: bytes) -> None:
    """The next record, and all that the index has of it."""
    w = rows.words
    spans = rows.spans
    now = spans.standing
    try:
        read = read_record(data)
    except CANNOT_READ:
        read = IndexedRecord("", now.utc, 0, "", IndexedActor("", ""), Raw(b"{}"))
        rows.problem(NOT_UNDERSTOOD)
    by, utc = read.by, read.utc
    spans.record(segment, seq, utc)
    event = ""
    reads = _KINDS.get(read.kind)
    if reads is not None:
        try:
            event = reads(rows, seq, read)
        except CANNOT_READ:
            rows.problem(NOT_UNDERSTOOD)
    if by.role not in _NOBODY:
        rows.person(seq, by.name, by.role)
    rows.seat(by.seat)
    now.utc = utc
    dealer = 0 if now.shift is None else now.shift.dealer
    who = (w[by.role], w[by.name], by.seat, w[event], dealer)
    row = (seq, utc, w[read.day], read.round, w[read.kind], *who, read.cause)
    rows.end((*row, segment, offset, len(data)))
    if event == _CLOSED and read.kind == "decision":
        spans.nobody_deals()


_NOBODY: Final = frozenset({"device", ""})
"""Roles that are no person's."""
_CLOSED: Final = TableClosed.__name__


# --- by kind ----------------------------------------------------------------------------------

_Reads: TypeAlias = Callable[[Rows, int, IndexedRecord], str]
"""Puts down what the record's data says; answers with its event, or what happened."""


def _decision(rows: Rows, seq: int, read: IndexedRecord) -> str:
    made = read_made(read.data)
    event = made.event
    spans = rows.spans
    if read.by.role == "dealer":
        spans.deals(rows.words[read.by.name])
    spans.at_round(read.round, read.utc)
    rows.seat(event.seat)
    if event.second is not None:
        rows.person(seq, event.second.name, "second")
    happens = _EVENTS.get(event.type)
    if happens is not None:
        happens(rows, seq, read, event)
    shown = TAKEN.get(event.type)
    if shown is not None:
        rows.irregularity(seq, shown.value, _seat(made))
    for effect in made.effects:
        follows = _EFFECTS.get(effect.type)
        if follows is not None:
            follows(rows, seq, read, made, effect)
    return event.type


def _seat(made: IndexedDecision) -> int:
    """Whose chips it is about: what is withdrawn, the seat is asked for anew."""
    if made.event.type != Withdrawn.__name__:
        return made.event.seat
    return next((one.seat for one in made.effects if one.type == Prompt.__name__), 0)


def _refusal(rows: Rows, seq: int, read: IndexedRecord) -> str:
    down = read_turned_down(read.data)
    event = down.event
    shown = REFUSED.get(down.id)
    if shown is not None:
        rows.irregularity(seq, shown.value, event.seat)
    rows.problem(down.id)
    rows.seat(event.seat)
    if event.amount is not None:
        rows.amount(seq, "refused", event.seat, event.bet, event.amount)
    return event.type


def _happened(rows: Rows, seq: int, read: IndexedRecord) -> str:
    return read_what(read.data).what


def _wrong(rows: Rows, seq: int, read: IndexedRecord) -> str:
    """Something that the house wants to see again: by its name, or by its kind."""
    what = read_what(read.data).what
    rows.problem(what or read.kind)
    return what


_KINDS: Final[dict[str, _Reads]] = {
    "decision": _decision,
    "refusal": _refusal,
    "device": _happened,
    "link": _happened,
    "person": _happened,
    "fault": _wrong,
    "clock": _wrong,
    "tail": _wrong,
    "unwitnessed": _wrong,
}


# --- by event ---------------------------------------------------------------------------------

_Happens: TypeAlias = Callable[[Rows, int, IndexedRecord, IndexedEvent], None]


def _card(how: str) -> _Happens:
    def happens(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
        rows.card(seq, event.card, 0, how)

    return happens


def _drawn(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    rows.card(seq, event.card, rows.spans.standing.seat, "drawn")


def _not_read(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    rows.spans.standing.unread = rows.spans.standing.seat


def _misread(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    """The floor is told of the seat, where it is not the dealer's own."""
    rows.spans.standing.unread = 0


def _entered(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    """Read from the felt: where it was to go when nobody could read it."""
    rows.card(seq, event.card, rows.spans.standing.unread, "entered")


def _wager(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    rows.amount(seq, "wager", event.seat, event.bet, event.amount or 0)
    rows.spans.wager(read.utc)


def _paid(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    if event.amount is not None:
        rows.amount(seq, "declared", 0, "", event.amount)


_EVENTS: Final[dict[str, _Happens]] = {
    CardDrawn.__name__: _drawn,
    CardUnreadable.__name__: _not_read,
    UnknownCardDrawn.__name__: _not_read,
    CardMisread.__name__: _misread,
    CardEntered.__name__: _entered,
    HoleRevealed.__name__: _card("revealed"),
    FaceUpCardFound.__name__: _card("found"),
    ErrorCardExposed.__name__: _card("exposed"),
    WagerPlaced.__name__: _wager,
    Paid.__name__: _paid,
}


# --- by effect --------------------------------------------------------------------------------

_Follows: TypeAlias = Callable[[Rows, int, IndexedRecord, IndexedDecision, IndexedEffect], None]


def _prompt(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    """Where the next card goes, and which chips a double, split or insurance asks for."""
    now = rows.spans.standing
    tell = e.tell
    if tell in _CARD_TELLS:
        now.seat = e.seat
    elif tell == _TAKE_WAGERS:
        # The first card goes to the first seat that has wagered.
        now.seat = min((seat for each in made.effects for seat, _ in each.lamps), default=0)
        if not e.count:
            rows.spans.no_wagers()
    else:
        now.seat = 0
    asked = _ASKED.get((made.event.type, tell))
    if asked is not None:
        rows.amount(seq, asked, e.seat, "insurance" if asked == "insurance" else "main", e.amount)
    if tell == _OPEN_TABLE:
        rows.spans.no_wagers()


def _settled(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    numbers = (e.round, e.seat, e.hand, e.stake, e.returned)
    rows.settled(seq, numbers, e.bet, e.outcome, e.why)
    if e.returned > e.stake:
        rows.amount(seq, "paid", e.seat, e.bet, e.returned - e.stake)
    elif e.returned:
        rows.amount(seq, "returned", e.seat, e.bet, e.returned)
    else:
        rows.amount(seq, "collected", e.seat, e.bet, e.stake)
    for card in e.cards:
        rows.card(seq, card, e.seat, "settled")


def _tucked(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    for card in e.cards:
        rows.card(seq, card, e.seat, "tucked")


def _away(how: str) -> _Follows:
    """A card that left play; its face is there only where it was seen."""

    def follows(
        rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
    ) -> None:
        rows.card(seq, e.card, 0, how)

    return follows


def _told(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    """The floor is told of every irregularity that is held or let pass; surveillance of some of
    them as well."""
    if e.who == "floor":
        rows.irregularity(seq, e.what, e.seat)
    if e.seat and made.event.type in _READ_AGAIN:
        rows.spans.standing.unread = e.seat


_READ_AGAIN: Final = frozenset({CardMisread.__name__, UnknownCardDrawn.__name__})
"""Of a card that lies on its place already."""


def _ruled(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.ruled(seq, e.what, e.way, e.by, e.second)


def _dead(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.seat(e.seat)


def _corrected(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.amount(seq, "was_paid", e.seat, e.bet, e.paid)
    rows.amount(seq, "was_due", e.seat, e.bet, e.due)
    rows.spans.correct(e.round)


def _locked(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.amount(seq, "locked", 0, "", e.total)
    now = rows.spans.standing.round
    if now is not None and now.round == e.round:
        now.wagered = e.total


def _void(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    now = rows.spans.standing.round
    if now is not None and now.round == e.round:
        now.void = 1


def _over(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.amount(seq, "won", 0, "", e.won)
    now = rows.spans.standing.round
    if now is not None and now.round == e.round:
        now.won, now.over_seq, now.over_utc = e.won, seq, read.utc


def _counted(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    rows.amount(seq, "bank", 0, "", e.bank)


_EFFECTS: Final[dict[str, _Follows]] = {
    Prompt.__name__: _prompt,
    Settled.__name__: _settled,
    Tucked.__name__: _tucked,
    Burned.__name__: _away("burned"),
    Discarded.__name__: _away("discarded"),
    Told.__name__: _told,
    Ruled.__name__: _ruled,
    SeatDead.__name__: _dead,
    Corrected.__name__: _corrected,
    WagersLocked.__name__: _locked,
    RoundVoid.__name__: _void,
    RoundOver.__name__: _over,
    BankCounted.__name__: _counted,
}
_CARD_TELLS: Final = frozenset({Tell.DEAL.value, Tell.LAY_SPARE.value})
_TAKE_WAGERS: Final = Tell.TAKE_WAGERS.value
_OPEN_TABLE: Final = Tell.OPEN_TABLE.value
_ASKED: Final = {
    (Insure.__name__, Tell.CONFIRM_INSURANCE.value): "insurance",
    (Double.__name__, Tell.CONFIRM_DOUBLE.value): "double",
    (Split.__name__, Tell.CONFIRM_SPLIT.value): "split",
}
"""By what was said and what is to be confirmed then."""
