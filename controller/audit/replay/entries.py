"""Encoding of events and the procedure's answers as record entries, and decoding.

  log.write([event_entry(event, answer, before, cursor=..., sealed=...)])
  made = decode_decision(record)  # DecisionData(event, rows, effects, sealed)

The actor of an event is `by` of its record, and is not stored again; in records of version 1 it is.

An entry for a face-down card contains its commitment and its sealed opening, each of fixed
length. It cannot be created without them, nor with anything else in their place.
"""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from controller.audit.format.hole_cards import COMMITMENT_SIZE, SEALED_TEXT
from controller.audit.format.records import (
    DeviceCursor,
    Record,
    RecordActor,
    RecordEntry,
    encode,
)
from controller.procedure.engine import EVENTS
from controller.procedure.model.effects import (
    Corrected,
    Effect,
    RoundOver,
    RoundVoid,
    Ruled,
    WagersLocked,
)
from controller.procedure.model.events import (
    Actor,
    ErrorCardDrawn,
    Event,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
)
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step


def _leaves(kind: type[Effect]) -> list[type[Effect]]:
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] if below else [kind]


EFFECTS: Final[tuple[type[Effect], ...]] = tuple(_leaves(Effect))

if TYPE_CHECKING:
    AnyEvent: TypeAlias = Event
    AnyEffect: TypeAlias = Effect
else:  # the decoder distinguishes them by their tags
    AnyEvent = reduce(or_, EVENTS)
    AnyEffect = reduce(or_, EFFECTS)


class DecisionData(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The `data` of a decision. In an entry the event is without its actor."""

    event: AnyEvent
    rows: tuple[str, ...]
    effects: tuple[AnyEffect, ...]
    sealed: str | UnsetType = UNSET
    """The opening of a face-down card, encrypted to surveillance, in base64."""


class RefusalData(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The `data` of a refusal. In an entry the event is without its actor."""

    event: AnyEvent
    id: str
    why: str


class RecordedEvent(NamedTuple):
    """The input of the procedure, from the `data` of a decision or refusal."""

    event: Event
    sealed: str | UnsetType


class _RawEvent(Struct, frozen=True, gc=False):
    event: Raw
    sealed: str | UnsetType = UNSET


class _RawDecision(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    event: Raw
    rows: tuple[str, ...]
    effects: tuple[AnyEffect, ...]
    sealed: str | UnsetType = UNSET


class _RawRefusal(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    event: Raw
    id: str
    why: str


_COMMITMENT: Final = re.compile(f"[0-9a-f]{{{2 * COMMITMENT_SIZE}}}")
_SEALED: Final = re.compile(SEALED_TEXT)
_SIGNED: Final = frozenset[type[Effect]]({RoundOver, WagersLocked, RoundVoid, Corrected})
"""Effects that request a checkpoint, beside a ruling of two people."""
_NO_CARD: Final = -1


# --- what is recorded -------------------------------------------------------------------------


def record_actor(actor: Actor) -> RecordActor:
    return RecordActor(actor.role, actor.name, actor.seat)


def without_actor(event: Event) -> Event:
    """The event as it is encoded in an entry: its actor is that of the record."""
    return replace(event, actor=UNSET)


def event_entry(
    event: Event,
    answer: Decision | Refused,
    before: State,
    *,
    cursor: DeviceCursor | None = None,
    sealed: str = "",
    cause: int = 0,
) -> RecordEntry:
    """The entry for an event in the state `before`.

    `cursor`: the device's position. `sealed`: the sealed opening of a face-down card. Raises
    ValueError if a face-down card lacks what must be recorded of it.
    """
    if isinstance(answer, Decision):
        return decision_entry(event, answer, cursor=cursor, sealed=sealed, cause=cause)
    if sealed:
        raise ValueError(f"a {type(event).__name__} that was refused has nothing sealed")
    return refusal_entry(event, answer, before, cursor=cursor, cause=cause)


def decision_entry(
    event: Event,
    answer: Decision,
    *,
    cursor: DeviceCursor | None = None,
    sealed: str = "",
    cause: int = 0,
) -> RecordEntry:
    _check_hidden(event, cursor, sealed)
    return RecordEntry(
        "decision",
        record_actor(event.actor),
        DecisionData(without_actor(event), answer.rows, answer.effects, sealed or UNSET),
        answer.state.round,
        cause,
        cursor,
        answer.state,
        signs(answer.effects),
    )


def refusal_entry(
    event: Event,
    answer: Refused,
    before: State,
    *,
    cursor: DeviceCursor | None = None,
    cause: int = 0,
) -> RecordEntry:
    return RecordEntry(
        "refusal",
        record_actor(event.actor),
        RefusalData(without_actor(_untold(event, before)), answer.id, answer.why),
        before.round,
        cause,
        cursor,
    )


def signs(effects: tuple[Effect, ...]) -> bool:
    """Whether a checkpoint follows: the round is over, wagers are locked, two people have ruled,
    or something was corrected."""
    for effect in effects:  # for every event: a loop is faster than any()
        if type(effect) in _SIGNED or (isinstance(effect, Ruled) and effect.second):
            return True
    return False


def _check_hidden(event: Event, cursor: DeviceCursor | None, sealed: str) -> None:
    if not isinstance(event, HoleDealt | ErrorCardDrawn):
        if sealed:
            raise ValueError(f"nothing of a {type(event).__name__} is sealed")
        return
    if not _COMMITMENT.fullmatch(event.commitment):
        raise ValueError(f"a {type(event).__name__} without a commitment: nothing binds its card")
    if isinstance(event, HoleDealt) and event.spare and not sealed:
        return  # committed and sealed when it was drawn
    if cursor is None or not _SEALED.fullmatch(sealed):
        raise ValueError(f"a {type(event).__name__} without its cursor or its sealed opening")


def _untold(event: Event, before: State) -> Event:
    """Remove a card that is reported too early: its refusal is the same for every card, so
    neither the card nor the opening of its commitment is recorded."""
    if isinstance(event, HoleRevealed) and before.step is not Step.REVEAL:
        return replace(event, card=_NO_CARD, opening="")
    if isinstance(event, HoleChecked) and before.step is not Step.CHECK:
        return replace(event, blackjack=False)
    return event


# --- how it is read back ----------------------------------------------------------------------

_event: Final = msgspec.json.Decoder(AnyEvent).decode
_raw_event: Final = msgspec.json.Decoder(_RawEvent).decode
_raw_decision: Final = msgspec.json.Decoder(_RawDecision).decode
_raw_refusal: Final = msgspec.json.Decoder(_RawRefusal).decode


def decode_event(record: Record) -> RecordedEvent:
    """The event of a decision or refusal. Raises msgspec.DecodeError; so do the next two."""
    found = _raw_event(record.data)
    return RecordedEvent(_with_actor(found.event, record), found.sealed)


def decode_decision(record: Record) -> DecisionData:
    found = _raw_decision(record.data)
    event = _with_actor(found.event, record)
    return DecisionData(event, found.rows, found.effects, found.sealed)


def decode_refusal(record: Record) -> RefusalData:
    found = _raw_refusal(record.data)
    return RefusalData(_with_actor(found.event, record), found.id, found.why)


def _with_actor(event: Raw, record: Record) -> Event:
    """Decode an event with `by` of its record as the actor."""
    if record.v == 1:
        return _event(event)
    return _event(b'{"actor":%b,%b' % (_actor(record.by), bytes(event)[1:]))


@lru_cache(maxsize=64)
def _actor(by: RecordActor) -> bytes:
    return encode(by)
