"""Encoding of events and the procedure's answers as record entries, and decoding.

  log.write([event_entry(event, answer, before, cursor=..., sealed=...)])
  made = decode_decision(record.data)  # DecisionData(event, rows, effects, sealed)

An entry for a face-down card contains its commitment and its sealed opening, each of fixed
length. It cannot be created without them, nor with anything else in their place.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from controller.audit.format.hole_cards import COMMITMENT_SIZE, SEALED_TEXT
from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
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
    """The `data` of a decision."""

    event: AnyEvent
    rows: tuple[str, ...]
    effects: tuple[AnyEffect, ...]
    sealed: str | UnsetType = UNSET
    """The opening of a face-down card, encrypted to surveillance, in base64."""


class RefusalData(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The `data` of a refusal."""

    event: AnyEvent
    id: str
    why: str


class RecordedEvent(Struct, frozen=True, gc=False):
    """The input of the procedure, from the `data` of a decision or refusal."""

    event: AnyEvent
    sealed: str | UnsetType = UNSET


_COMMITMENT: Final = re.compile(f"[0-9a-f]{{{2 * COMMITMENT_SIZE}}}")
_SEALED: Final = re.compile(SEALED_TEXT)
_SIGNED: Final = frozenset[type[Effect]]({RoundOver, WagersLocked, RoundVoid, Corrected})
"""Effects that request a checkpoint, beside a ruling of two people."""
_NO_CARD: Final = -1


# --- what is recorded -------------------------------------------------------------------------


def record_actor(actor: Actor) -> RecordActor:
    return RecordActor(actor.role, actor.name, actor.seat)


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
        DecisionData(event, answer.rows, answer.effects, sealed or UNSET),
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
        RefusalData(_untold(event, before), answer.id, answer.why),
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

decode_decision: Final = msgspec.json.Decoder(DecisionData).decode
decode_refusal: Final = msgspec.json.Decoder(RefusalData).decode
decode_event: Final = msgspec.json.Decoder(RecordedEvent).decode
