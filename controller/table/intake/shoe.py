"""Readers of the shoe's events.

A card that comes face down is sealed before anything else is done with it: only its position is
recorded, and checks that need its value wait until it is turned over.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from controller.audit.format.records import RecordEntry
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.felt import expected, next_spare
from controller.procedure.model.holds import BEFORE, stopped_at
from controller.procedure.model.state import State, Step
from controller.table.intake.context import (
    SHOE,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from controller.table.memory import SeenCard, Suspicion, TableMemory
from drivers.devices import (
    CardRetracted,
    CoverMoved,
    CutCardCame,
    ReadFailed,
    ShoeCardRead,
    ShoeLoaded,
)
from firmware_protocol.messages import CardFlags, CardRead, DeckKind, ReadWhy

CardDestination: TypeAlias = Literal[
    "face_up", "hole", "burn", "error", "instead_of_hole", "nothing"
]
"""The use of a card that leaves the shoe. "error": none was due, and the card is unseen;
"instead_of_hole": it came to the hole card's place while a spare card is due there; "nothing": no
shoe is in play."""

_NO_SHOE: Final = (Step.CLOSED, Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.REFILL)
_LOADING: Final = (Step.LOADING, Step.REFILL)


def card_destination(s: State) -> CardDestination:
    """The use of a card that leaves the shoe at this state."""
    if s.step in _NO_SHOE:
        return "nothing"
    if s.step is Step.WAGERING:
        # The first card ends the wagers.
        return "face_up" if s.seats and s.spare is None else "error"
    place = expected(s)
    if place is None:
        return "error"
    if place.kind == "burn":
        return "burn"
    if place.kind == "hole":
        return "hole" if next_spare(s) is None else "instead_of_hole"
    return "face_up"


# --- cards ------------------------------------------------------------------------------------


def card(
    context: IntakeContext, now: TableSnapshot, event: ShoeCardRead, source: DeviceSource
) -> TableInput:
    s, place = now.state, card_destination(now.state)
    if place == "face_up" and not now.memory.discarding:
        read = event.body.open()
        seen = source.card_entry(s.round, read)
        return face_up(context, now.memory, read, seen, events.CardDrawn(SHOE, read.card))
    # Recorded of a card that is not seen: its position, and nothing else.
    out = source.entry(s.round, "ShoeCardRead", shoe=event.shoe, pos=event.pos)
    if place == "nothing":
        return TableInput(notes=(out,))
    if now.memory.discarding:
        pulled = {"shoe": event.shoe, "pos": event.pos, "discarded": True}
        return TableInput(notes=(source.entry(s.round, "ShoeCardRead", **pulled),))
    if place == "burn":
        return TableInput((events.CardBurned(SHOE),), notes=(out,))
    if place == "instead_of_hole":
        why = "another card came though one waits beside the shoe"
        return TableInput((events.CardUnreadable(SHOE, why),), notes=(out,))
    bound = context.vault.put(source.cursor, event.body)
    kind = events.HoleDealt if place == "hole" else events.ErrorCardDrawn
    return TableInput((kind(SHOE, bound.commitment_hex),), bound.sealed_b64, (out,))


def face_up(
    context: IntakeContext, memory: TableMemory, read: CardRead, seen: RecordEntry, event: Event
) -> TableInput:
    """Input of a card that becomes visible with `event`. `seen` records how it was read. A doubtful
    reading makes it unreadable instead; suspicions about the decks follow."""
    doubt = _doubt(context, read)
    back = _back_suspicions(context, memory, read)
    if doubt:
        return TableInput((events.CardUnreadable(SHOE, doubt), *back), notes=(seen,))
    order = memory.sequence_with(SeenCard(read.pos, read.card, read.back)).order
    if order is not None and "factory_order" not in memory.alarmed:
        back = (*back, events.DeckSuspect(SHOE, "factory_order"))
    twin = bool(read.flags & CardFlags.DUPLICATE)
    return TableInput((event, *back), notes=(seen,), twin=twin)


def turned_face_up(
    context: IntakeContext, now: TableSnapshot, commitment: str, event: Event
) -> TableInput:
    """Input of a card in the vault that is turned over with `event`."""
    read = context.vault.read(commitment).open()
    seen = turned_entry(context, now.state.round, commitment, read)
    return face_up(context, now.memory, read, seen, event)


def turned_entry(
    context: IntakeContext, round_: int, commitment: str, read: CardRead
) -> RecordEntry:
    """A record entry of a card that came face down and lies face up now: how it was read."""
    return DeviceSource("shoe", context.vault.cursor(commitment)).card_entry(round_, read)


def _doubt(context: IntakeContext, read: CardRead) -> str:
    """Why the reading is not reliable; empty if it is."""
    if read.flags & CardFlags.DOUBLE_FEED:
        return _together(read.flags)
    if read.confidence < context.settings.min_confidence:
        return f"read with {read.confidence} % confidence"
    return ""


def _together(flags: CardFlags) -> str:
    """Which of two cards this one is, for people: the one that is read may be the second."""
    which = {CardFlags.CAME_FIRST: ": this one first", CardFlags.CAME_SECOND: ": this one second"}
    order = flags & (CardFlags.CAME_FIRST | CardFlags.CAME_SECOND)
    return f"two cards came out together{which.get(order, '')}"


def _back_suspicions(
    context: IntakeContext, memory: TableMemory, read: CardRead
) -> tuple[Event, ...]:
    foreign = memory.foreign(read.back, context.settings.backs)
    return _suspect("foreign_back", memory) if foreign else ()


def _suspect(why: Suspicion, memory: TableMemory) -> tuple[Event, ...]:
    """The suspicion, unless it was raised for this loading before."""
    return () if why in memory.alarmed else (events.DeckSuspect(SHOE, why),)


def unread(
    context: IntakeContext, now: TableSnapshot, event: ReadFailed, source: DeviceSource
) -> TableInput:
    """A card left the shoe without being read."""
    s, place = now.state, card_destination(now.state)
    if now.memory.discarding and place != "nothing":
        return TableInput(notes=(source.entry_of(event, s.round, discarded=True),))
    if place == "nothing":
        return TableInput()
    foreign = event.why is ReadWhy.FOREIGN
    after = _suspect("foreign_back", now.memory) if foreign else ()
    if place == "burn":
        return TableInput((events.CardBurned(SHOE), *after))
    if place == "error":
        # A card that was not read has no commitment, so it cannot be used as the next card.
        return TableInput((events.UnknownCardDrawn(SHOE), *after))
    why = f"not read: {event.why.name.lower().replace('_', ' ')}"
    if event.flags & CardFlags.DOUBLE_FEED:
        why = f"{_together(event.flags)}, not read"
    return TableInput((events.CardUnreadable(SHOE, why), *after))


def cut_card(
    context: IntakeContext, now: TableSnapshot, event: CutCardCame, source: DeviceSource
) -> TableInput:
    return TableInput((events.CutCardSeen(SHOE),))


def retracted(
    context: IntakeContext, now: TableSnapshot, event: CardRetracted, source: DeviceSource
) -> TableInput:
    """A card went back into the shoe: people have to check it and its value."""
    if card_destination(now.state) == "nothing":
        return TableInput()
    return TableInput(wrong=(source.fault("retracted", f"card {event.pos} went back into it"),))


# --- the shoe itself --------------------------------------------------------------------------


def loaded(
    context: IntakeContext, now: TableSnapshot, event: ShoeLoaded, source: DeviceSource
) -> TableInput:
    """Cards were put in: a fault while others are in play. If the shoe cannot count, the dealer
    enters the count. `again` marks the batch that was in play before; batches alternate with each
    shuffle of all cards."""
    again = {} if stopped_at(now.state) in (Step.CLOSED, *BEFORE) else {"again": True}
    notes = (source.entry_of(event, now.state.round, **again),)
    # Every game is dealt from decks of 52 cards.
    fits = event.kind is not DeckKind.SPANISH_48
    kind = (source.fault("deck_kind", "" if fits else "it is set to decks of 48 cards"),)
    wrong, right = ((), kind) if fits else (kind, ())
    if now.state.step in _LOADING:
        counted = (events.ShoeLoaded(SHOE, event.count),) if event.count else ()
        return TableInput(counted, notes=notes, wrong=wrong, right=right)
    if card_destination(now.state) != "nothing":
        wrong = (*wrong, source.fault("loaded", "cards were put in"))
    return TableInput(notes=notes, wrong=wrong, right=right)


def cover(
    context: IntakeContext, now: TableSnapshot, event: CoverMoved, source: DeviceSource
) -> TableInput:
    """The cover may be open only while no shoe is in play, as for loading."""
    if event.open and card_destination(now.state) == "nothing":
        return TableInput()
    return source.fault_input("cover", "its cover is open", active=event.open)
