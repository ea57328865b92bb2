"""What the shoe tells, in the procedure's words.

A card that nobody may see stays sealed here: its place, and whether any may come, are looked at
before it is. What is odd about it waits until it is turned over.
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
from controller.table.intake.notes import card_seen, note, note_of
from controller.table.memory import DeviceFault, FaultCause, SeenCard, Suspicion, TableMemory
from drivers.devices import DeviceEvent, shoe
from firmware_protocol.messages.enums import CardFlags, JamCode, ReadWhy
from firmware_protocol.messages.shoe import CardRead

CardDestination: TypeAlias = Literal[
    "face_up", "hole", "burn", "error", "instead_of_hole", "nothing"
]
"""What becomes of a card that leaves the shoe: it comes face up; it is the hole card; it is burned;
it came when none was due, and nobody has seen it; it came to the hole card's place, where another
one beside the shoe is due; or no shoe is in play."""

_NO_SHOE: Final = (Step.CLOSED, Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.REFILL)
_LOADING: Final = (Step.LOADING, Step.REFILL)


def card_destination(s: State) -> CardDestination:
    """What becomes of a card that leaves the shoe at this state."""
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


def device_fault(
    source: DeviceSource, cause: FaultCause, why: str = "", what: str = ""
) -> DeviceFault:
    return DeviceFault(source.device, source.serial, cause, what, why)


def wrong_or_right(
    source: DeviceSource, cause: FaultCause, why: str, *, wrong: bool, note: TableInput
) -> TableInput:
    """Something is wrong with a device, or is so no longer."""
    found = (device_fault(source, cause, why),)
    return (
        TableInput(notes=note.notes, wrong=found)
        if wrong
        else TableInput(notes=note.notes, right=found)
    )


def noted(told: DeviceEvent, source: DeviceSource, now: TableSnapshot) -> TableInput:
    """For the record alone."""
    return TableInput(notes=(note_of(told, source, now.state.round),))


# --- cards ------------------------------------------------------------------------------------


def card(
    ear: IntakeContext, now: TableSnapshot, told: shoe.ShoeCardRead, source: DeviceSource
) -> TableInput:
    s, place = now.state, card_destination(now.state)
    if place == "face_up" and not now.recall.discarding:
        return face_up(ear, now, told.body.open(), source)
    # Before anything is done with it: of a card that is not seen nothing but this is recorded.
    out = note(source, s.round, "ShoeCardRead", shoe=told.shoe, pos=told.pos)
    if place == "nothing":
        return TableInput(notes=(out,))
    if now.recall.discarding:
        pulled = note(source, s.round, "ShoeCardRead", shoe=told.shoe, pos=told.pos, discarded=True)
        return TableInput(notes=(pulled,))
    if place == "burn":
        return TableInput((events.CardBurned(SHOE),), notes=(out,))
    if place == "instead_of_hole":
        why = "another card came though one waits beside the shoe"
        return TableInput((events.CardUnreadable(SHOE, why),), notes=(out,))
    bound = ear.vault.put(source.cursor, told.body)
    if place == "hole":
        hidden: Event = events.HoleDealt(SHOE, bound.commitment_hex)
    else:
        hidden = events.ErrorCardDrawn(SHOE, bound.commitment_hex)
    return TableInput((hidden,), bound.sealed_b64, (out,))


def face_up(
    ear: IntakeContext, now: TableSnapshot, read: CardRead, source: DeviceSource
) -> TableInput:
    """A card that everybody sees."""
    seen = card_seen(source, now.state.round, read)
    doubt = doubt_of(ear, read)
    if doubt is not None:
        return TableInput((doubt, *back_suspicions(ear, now.recall, read)), notes=(seen,))
    drawn = events.CardDrawn(SHOE, read.card)
    return TableInput(
        (drawn, *card_suspicions(ear, now.recall, read)), notes=(seen,), twin=is_duplicate(read)
    )


def card_turned(ear: IntakeContext, round_: int, commitment: str, read: CardRead) -> RecordEntry:
    """How a card was read that lies face up by now, and lay face down."""
    return card_seen(DeviceSource("shoe", ear.vault.cursor(commitment)), round_, read)


def doubt_of(ear: IntakeContext, read: CardRead) -> Event | None:
    """The event of a card that is not known for sure; None: it is."""
    if read.flags & CardFlags.DOUBLE_FEED:
        return events.CardUnreadable(SHOE, "two cards came out together")
    if read.confidence < ear.house.min_confidence:
        return events.CardUnreadable(SHOE, f"read with {read.confidence} % confidence")
    return None


def is_duplicate(read: CardRead) -> bool:
    """The shoe itself has seen the card more often than its decks hold it."""
    return bool(read.flags & CardFlags.DUPLICATE)


def card_suspicions(ear: IntakeContext, recall: TableMemory, read: CardRead) -> tuple[Event, ...]:
    """What follows from a card that came face up: that the decks are not what they should be."""
    lie = recall.lying_with(SeenCard(read.pos, read.card, read.back))
    if "factory_order" not in recall.alarmed and lie.order is not None:
        return (*back_suspicions(ear, recall, read), suspicion_event("factory_order"))
    return back_suspicions(ear, recall, read)


def back_suspicions(ear: IntakeContext, recall: TableMemory, read: CardRead) -> tuple[Event, ...]:
    foreign = recall.foreign(read.back, ear.house.backs)
    if foreign and "foreign_back" not in recall.alarmed:
        return (suspicion_event("foreign_back"),)
    return ()


def suspicion_event(why: Suspicion) -> Event:
    return events.DeckSuspect(SHOE, why)


def unread(
    ear: IntakeContext, now: TableSnapshot, told: shoe.ReadFailed, source: DeviceSource
) -> TableInput:
    """A card left the shoe, and what it is the shoe does not know."""
    s, place = now.state, card_destination(now.state)
    notes = noted(told, source, now).notes
    if place == "nothing":
        return TableInput(notes=notes)
    if now.recall.discarding:
        return TableInput(notes=(note_of(told, source, s.round, discarded=True),))
    foreign = told.why is ReadWhy.FOREIGN and "foreign_back" not in now.recall.alarmed
    after = (suspicion_event("foreign_back"),) if foreign else ()
    if place == "burn":
        return TableInput((events.CardBurned(SHOE), *after), notes=notes)
    if place == "error":
        # Nothing can bind a card that was not read, so it cannot be the next one.
        return TableInput((events.UnknownCardDrawn(SHOE), *after), notes=notes)
    why = told.why.name.lower().replace("_", " ")
    return TableInput((events.CardUnreadable(SHOE, f"not read: {why}"), *after), notes=notes)


def cut_card(
    ear: IntakeContext, now: TableSnapshot, told: shoe.CutCardCame, source: DeviceSource
) -> TableInput:
    return TableInput((events.CutCardSeen(SHOE),), notes=noted(told, source, now).notes)


def retracted(
    ear: IntakeContext, now: TableSnapshot, told: shoe.CardRetracted, source: DeviceSource
) -> TableInput:
    """A card is not where the table has it: people look, also for what it was."""
    notes = noted(told, source, now).notes
    if card_destination(now.state) == "nothing":
        return TableInput(notes=notes)
    why = f"card {told.pos} went back into it"
    return TableInput(notes=notes, wrong=(device_fault(source, "retracted", why),))


# --- the shoe itself --------------------------------------------------------------------------


def loaded(
    ear: IntakeContext, now: TableSnapshot, told: shoe.ShoeLoaded, source: DeviceSource
) -> TableInput:
    """Cards that are put in while others are in play are looked at by people. A shoe that cannot
    count leaves it to the dealer to say how many there are. Batches take turns with each shuffle
    of all cards: what is put in before that is of the same one."""
    again = {} if stopped_at(now.state) in (Step.CLOSED, *BEFORE) else {"again": True}
    notes = (note_of(told, source, now.state.round, **again),)
    if now.state.step in _LOADING:
        return TableInput((events.ShoeLoaded(SHOE, told.count),) if told.count else (), notes=notes)
    if card_destination(now.state) == "nothing":
        return TableInput(notes=notes)
    return TableInput(notes=notes, wrong=(device_fault(source, "loaded", "cards were put in"),))


def cover(
    ear: IntakeContext, now: TableSnapshot, told: shoe.CoverMoved, source: DeviceSource
) -> TableInput:
    note = noted(told, source, now)
    # Whoever loads the shoe opens it.
    wrong = told.open and card_destination(now.state) != "nothing"
    if told.open and not wrong:
        return note
    return wrong_or_right(source, "cover", "its cover is open", wrong=wrong, note=note)


def jam(
    ear: IntakeContext, now: TableSnapshot, told: shoe.ShoeJammed, source: DeviceSource
) -> TableInput:
    wrong = told.code is not JamCode.CLEARED
    why = f"a card is stuck ({told.code.name.lower()})"
    return wrong_or_right(source, "jam", why, wrong=wrong, note=noted(told, source, now))
