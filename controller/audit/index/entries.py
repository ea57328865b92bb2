"""The index rows of one record.

A card becomes a row only if an accepted event shows its face, or a fact names it face up. A card in
a refused event is not indexed.

Other software versions may write other data: a record that cannot be decoded gets a row without
details.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from controller.audit.format.records import CONTROLLER, utc_date
from controller.audit.format.table_entries import NOT_RECORDED
from controller.audit.index.rows import Rows
from controller.procedure.model.effects import Tell
from controller.procedure.model.holds import REFUSED, TAKEN

SqlInteger: TypeAlias = Annotated[int, Meta(ge=-(1 << 62), le=(1 << 62) - 1)]
"""An integer that SQLite can store, and the difference of two of them."""


class IndexedActor(Struct, frozen=True, gc=False):
    role: str
    name: str
    seat: SqlInteger = 0


_CONTROLLER: Final = IndexedActor(CONTROLLER.role, CONTROLLER.name)


class IndexedRecord(Struct, gc=False):
    utc: SqlInteger
    round: SqlInteger
    kind: str
    data: msgspec.Raw
    by: IndexedActor = _CONTROLLER
    cause: SqlInteger = 0
    written_day: str = msgspec.field(default="", name="day")

    @property
    def day(self) -> str:
        return self.written_day or utc_date(self.utc)


class IndexedEvent(Struct, gc=False):
    """The indexed fields of all events."""

    type: str
    seat: SqlInteger = 0
    card: SqlInteger = -1
    bet: str = ""
    amount: SqlInteger | None = None
    second: IndexedActor | None = None


class IndexedEffect(Struct, gc=False):
    """The indexed fields of all effects."""

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


decode_record: Final = msgspec.json.Decoder(IndexedRecord).decode
decode_decision: Final = msgspec.json.Decoder(IndexedDecision).decode
decode_refusal: Final = msgspec.json.Decoder(IndexedRefusal).decode
decode_other: Final = msgspec.json.Decoder(IndexedOther).decode
"""These decoders raise the exceptions in CANNOT_READ."""
CANNOT_READ: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


NOT_UNDERSTOOD: Final = "not_understood"
"""The problem of a record that cannot be decoded."""


def index_record(rows: Rows, segment: int, offset: int, seq: int, data: bytes) -> None:
    """Add the rows of the next record."""
    w = rows.words
    spans = rows.spans
    now = spans.now
    try:
        read = decode_record(data)
    except CANNOT_READ:
        read = IndexedRecord(now.utc, 0, "", Raw(b"{}"), IndexedActor("", ""))
        rows.problem(NOT_UNDERSTOOD)
    by, utc = read.by, read.utc
    spans.record(segment, seq, utc)
    event = ""
    try:
        event = _index_data(rows, seq, read)
    except CANNOT_READ:
        rows.problem(NOT_UNDERSTOOD)
    if by.role not in _NO_PERSON:
        rows.person(seq, by.name, by.role)
    rows.seat(by.seat)
    now.utc = utc
    dealer = 0 if now.shift is None else now.shift.dealer
    who = (w[by.role], w[by.name], by.seat, w[event], dealer)
    row = (seq, utc, w[read.day], read.round, w[read.kind], *who, read.cause)
    rows.end((*row, segment, offset, len(data)))
    if event == "TableClosed" and read.kind == "decision":
        spans.end_shift()


_NO_PERSON: Final = frozenset({"device", ""})
"""Roles that are not people."""


# --- by kind ----------------------------------------------------------------------------------


def _index_data(rows: Rows, seq: int, read: IndexedRecord) -> str:
    """Index the data of a record. Returns its event, or the name of what happened."""
    match read.kind:
        case "decision":
            return _index_decision(rows, seq, read)
        case "refusal":
            return _index_refusal(rows, seq, read)
        case "device" | "link" | "person":
            what = decode_other(read.data).what
            if (read.kind, what) == ("link", NOT_RECORDED):
                rows.problem(what)
            return what
        case "fault" | "clock" | "tail" | "unwitnessed":
            what = decode_other(read.data).what
            rows.problem(what or read.kind)
            return what
    return ""


def _index_decision(rows: Rows, seq: int, read: IndexedRecord) -> str:
    made = decode_decision(read.data)
    event = made.event
    spans = rows.spans
    if read.by.role == "dealer":
        spans.set_dealer(rows.words[read.by.name])
    spans.start_round(read.round, read.utc)
    rows.seat(event.seat)
    if event.second is not None:
        rows.person(seq, event.second.name, "second")
    _index_event(rows, seq, read, event)
    shown = TAKEN.get(event.type)
    if shown is not None:
        rows.irregularity(seq, shown.value, _seat(made))
    for effect in made.effects:
        _index_effect(rows, seq, read, made, effect)
    return event.type


def _seat(made: IndexedDecision) -> int:
    """The seat of the chips. After a withdrawal the seat is in the new prompt."""
    if made.event.type != "Withdrawn":
        return made.event.seat
    return next((one.seat for one in made.effects if one.type == "Prompt"), 0)


def _index_refusal(rows: Rows, seq: int, read: IndexedRecord) -> str:
    refusal = decode_refusal(read.data)
    event = refusal.event
    shown = REFUSED.get(refusal.id)
    if shown is not None:
        rows.irregularity(seq, shown.value, event.seat)
    rows.problem(refusal.id)
    rows.seat(event.seat)
    if event.amount is not None:
        rows.amount(seq, "refused", event.seat, event.bet, event.amount)
    return event.type


# --- decisions --------------------------------------------------------------------------------


def _index_event(rows: Rows, seq: int, read: IndexedRecord, event: IndexedEvent) -> None:
    now = rows.spans.now
    match event.type:
        case "CardDrawn":
            rows.card(seq, event.card, now.seat, "drawn")
        case "CardUnreadable" | "UnknownCardDrawn":
            now.unread = now.seat
        case "CardMisread":
            now.unread = 0  # its effect names the seat, unless it is the dealer's own card
        case "CardEntered":
            rows.card(seq, event.card, now.unread, "entered")
        case "HoleRevealed":
            rows.card(seq, event.card, 0, "revealed")
        case "FaceUpCardFound":
            rows.card(seq, event.card, 0, "found")
        case "ErrorCardExposed":
            rows.card(seq, event.card, 0, "exposed")
        case "WagerPlaced":
            rows.amount(seq, "wager", event.seat, event.bet, event.amount or 0)
            rows.spans.add_wager(read.utc)
        case "Paid" if event.amount is not None:
            rows.amount(seq, "declared", 0, "", event.amount)


def _index_effect(
    rows: Rows, seq: int, read: IndexedRecord, made: IndexedDecision, e: IndexedEffect
) -> None:
    match e.type:
        case "Prompt":
            _index_prompt(rows, seq, made, e)
        case "Tucked":
            for card in e.cards:
                rows.card(seq, card, e.seat, "tucked")
        case "Burned":
            rows.card(seq, e.card, 0, "burned")
        case "Discarded":
            rows.card(seq, e.card, 0, "discarded")
        case "Told":
            # Every irregularity is reported to the floor; some also to surveillance.
            if e.who == "floor":
                rows.irregularity(seq, e.what, e.seat)
            if e.seat and made.event.type in _CARD_ON_ITS_PLACE:
                rows.spans.now.unread = e.seat
        case "Ruled":
            rows.add_ruling(seq, e.what, e.way, e.by, e.second)
        case "SeatDead":
            rows.seat(e.seat)
        case _:
            _index_money(rows, seq, read, e)


def _index_money(rows: Rows, seq: int, read: IndexedRecord, e: IndexedEffect) -> None:
    match e.type:
        case "Settled":
            _index_settled(rows, seq, e)
        case "Corrected":
            rows.amount(seq, "was_paid", e.seat, e.bet, e.paid)
            rows.amount(seq, "was_due", e.seat, e.bet, e.due)
            rows.spans.count_correction(e.round)
        case "WagersLocked":
            rows.amount(seq, "locked", 0, "", e.total)
            rows.spans.change_round(e.round, wagered=e.total)
        case "RoundVoid":
            rows.spans.change_round(e.round, void=1)
        case "RoundOver":
            rows.amount(seq, "won", 0, "", e.won)
            rows.spans.change_round(e.round, won=e.won, over_seq=seq, over_utc=read.utc)
        case "BankCounted":
            rows.amount(seq, "bank", 0, "", e.bank)


_CARD_ON_ITS_PLACE: Final = frozenset({"CardMisread", "UnknownCardDrawn"})
"""Events of a card that is already on its place on the felt."""


def _index_prompt(rows: Rows, seq: int, made: IndexedDecision, e: IndexedEffect) -> None:
    """Store where the next card goes, and the chips that a confirmation is for."""
    now = rows.spans.now
    now.seat = 0
    match e.tell:
        case Tell.DEAL.value | Tell.LAY_SPARE.value:
            now.seat = e.seat
        case Tell.TAKE_WAGERS.value:
            # The first card goes to the first seat that has wagered.
            now.seat = min((seat for each in made.effects for seat, _ in each.lamps), default=0)
            if not e.count:
                rows.spans.drop_wagers()
        case Tell.OPEN_TABLE.value:
            rows.spans.drop_wagers()
    match made.event.type, e.tell:
        case "Insure", Tell.CONFIRM_INSURANCE.value:
            rows.amount(seq, "insurance", e.seat, "insurance", e.amount)
        case "Double", Tell.CONFIRM_DOUBLE.value:
            rows.amount(seq, "double", e.seat, "main", e.amount)
        case "Split", Tell.CONFIRM_SPLIT.value:
            rows.amount(seq, "split", e.seat, "main", e.amount)


def _index_settled(rows: Rows, seq: int, e: IndexedEffect) -> None:
    rows.add_bet(seq, (e.round, e.seat, e.hand, e.stake, e.returned), e.bet, e.outcome, e.why)
    if e.returned > e.stake:
        rows.amount(seq, "paid", e.seat, e.bet, e.returned - e.stake)
    elif e.returned:
        rows.amount(seq, "returned", e.seat, e.bet, e.returned)
    else:
        rows.amount(seq, "collected", e.seat, e.bet, e.stake)
    for card in e.cards:
        rows.card(seq, card, e.seat, "settled")
