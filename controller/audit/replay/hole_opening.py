"""Opens the hole card of a voided round with surveillance's key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from controller.audit.errors import NotVoided, RecordDamaged, RecordProblem
from controller.audit.format.hole_cards import NotCommitted, SealProblem, opened_card
from controller.audit.format.records import DeviceCursor, table_of
from controller.audit.read.lookup import (
    DecisionOutline,
    LocatedRecord,
    decode_outline,
    head,
    of_rounds,
    of_seqs,
)
from controller.audit.read.reader import ASK
from controller.rules.cards import Card

VOID: Final = "RoundVoid"


class KeyDoesNotOpen(RecordProblem):
    """The key does not decrypt the card."""


class SealedHoleCard(Struct, frozen=True):
    """A hole card that was dealt and never turned over."""

    round: int
    seq: int
    """The seq of the record that dealt it."""
    utc: int
    table: str
    commitment: str
    cursor: DeviceCursor
    sealed: str


def sealed_hole_cards(record: Path, turn: int) -> list[SealedHoleCard]:
    """The hole cards of a voided round. Raises NotVoided, NoRecord, RecordDamaged, CannotWrite."""
    holes: list[SealedHoleCard] = []
    voided = False
    for told, made in _decisions(record, turn):
        if made.event.type == "HoleDealt":
            holes.append(_hole(record, told, made))
        elif made.event.type == "HoleRevealed" and holes:
            holes.pop()
        voided = voided or any(
            effect.type == VOID and effect.round == turn for effect in made.effects
        )
    if not voided:
        what = f"round {turn} was not voided: its hole card is in the record, or nobody's business"
        raise NotVoided(record, what, f"look at it: holecard audit show --round {turn}")
    if not holes:
        what = f"no hole card lay face down when round {turn} was voided"
        raise NotVoided(record, what, f"look at it: holecard audit show --round {turn}")
    return holes


def open_hole_card(record: Path, hole: SealedHoleCard, private: X25519PrivateKey) -> Card:
    """Decrypt the card. Raises KeyDoesNotOpen; RecordDamaged if it does not match its
    commitment."""
    where = f"{record}: record {hole.seq}"
    try:
        return opened_card(hole.cursor, hole.table, hole.commitment, hole.sealed, private)
    except NotCommitted as problem:
        raise RecordDamaged(where, str(problem), ASK) from None
    except SealProblem as problem:
        raise KeyDoesNotOpen(where, str(problem), "name surveillance's key of that time") from None


def _decisions(record: Path, turn: int) -> Iterator[tuple[LocatedRecord, DecisionOutline]]:
    for told in of_rounds(record, turn, turn):
        if told.record.kind == "decision":
            yield told, _made(record, told)


def _made(record: Path, told: LocatedRecord) -> DecisionOutline:
    try:
        return decode_outline(told.record.data)
    except msgspec.DecodeError as problem:
        raise RecordDamaged(
            record, f"{told.place}: a decision that cannot be read: {problem}", ASK
        ) from None


def _hole(record: Path, told: LocatedRecord, made: DecisionOutline) -> SealedHoleCard:
    """A card drawn in error may have become the hole card; it was sealed when it was drawn."""
    drawn, sealed = told, made.sealed
    if not sealed:
        drawn, sealed = _drawn(record, told, made.event.commitment)
    cursor = drawn.record.cursor
    if cursor is None:
        raise RecordDamaged(
            record, f"{drawn.place}: no device's record stands behind its card", ASK
        )
    return SealedHoleCard(
        told.record.round,
        told.place.seq,
        told.record.utc,
        table_of(head(record, told.place.segment).snapshot.origin),
        made.event.commitment,
        cursor,
        sealed,
    )


def _drawn(record: Path, dealt: LocatedRecord, commitment: str) -> tuple[LocatedRecord, str]:
    """The last record before `dealt` that drew and sealed this card."""
    found: tuple[LocatedRecord, str] | None = None
    needle = commitment.encode()
    for told in of_seqs(record, 1, dealt.place.seq - 1):
        if told.record.kind == "decision" and needle in told.data:
            made = _made(record, told)
            if made.event.commitment == commitment and made.sealed:
                found = told, made.sealed
    if found is None:
        raise RecordDamaged(
            record, f"{dealt.place}: nothing was sealed of the card with this commitment", ASK
        )
    return found
