"""What the shuffler tells, in the procedure's words. How many cards there are to be is the
table's to say: all of its decks, or in a round whose shoe ran out all but those on the felt.

Where the table has a shuffler, that says when the cards are shuffled, for it has counted them; what
it counts and tells too late is held against the cards that are in play by then.
"""

from __future__ import annotations

from typing import Final

from controller.procedure.model import events as e
from controller.procedure.model.events import Event
from controller.procedure.model.felt import discards
from controller.procedure.model.game import Game
from controller.procedure.model.holds import BEFORE, stopped_at
from controller.procedure.model.state import Step
from controller.table.intake.context import (
    SHUFFLER,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from controller.table.intake.shoe import device_fault, noted, wrong_or_right
from drivers.devices import shuffler
from firmware_protocol.messages.enums import JamCode

WORKING: Final = (Step.SHUFFLING, Step.REFILL)
_NO_CARDS: Final = (Step.CLOSED, Step.SHUFFLE_NEEDED)
"""Whatever was counted is shuffled and counted anew before it is dealt."""


def by_hand(ear: IntakeContext, now: TableSnapshot) -> bool:
    """Whether people say that the cards are shuffled: where there is no shuffler, or two people
    have taken it as it is. In a round the cards are too few for it, unless it has begun."""
    if not ear.shuffler or now.troubles.taken_as_it_is("shuffler"):
        return True
    return now.state.step is Step.REFILL and not now.recall.shuffling


def _of_a_round(now: TableSnapshot) -> bool:
    """The cards that are counted are the discards of a round."""
    step = stopped_at(now.state)
    return step is Step.REFILL or (step not in BEFORE and now.recall.again)


def wanted(g: Game, now: TableSnapshot) -> int:
    """So many cards come out of the shuffle that is waited for, or came out of the one before what
    is dealt now; 0: nobody knows."""
    if not _of_a_round(now):
        return g.decks * 52
    refills = stopped_at(now.state) is Step.REFILL
    return discards(g, now.state) if refills else now.recall.count


def _apart(g: Game, now: TableSnapshot, count: int) -> tuple[int, int]:
    """How many cards are missing, and how many are too many."""
    whole = wanted(g, now)
    return (max(whole - count, 0), max(count - whole, 0)) if whole else (0, 0)


def _counted(now: TableSnapshot, missing: int, extra: int) -> tuple[Event, ...]:
    """The end of the shuffle that is waited for; where none is, a doubt about the cards that were
    taken for shuffled."""
    s = now.state
    if s.step in WORKING:
        return (e.ShuffleDone(SHUFFLER, missing, extra),)
    if stopped_at(s) in _NO_CARDS or not (missing or extra):
        return ()
    return (e.DeckSuspect(SHUFFLER, "short" if missing else "long"),)


def started(
    ear: IntakeContext, now: TableSnapshot, told: shuffler.ShuffleStarted, source: DeviceSource
) -> TableInput:
    """Begun by its own button, where the table waits for it; else it is what was asked for."""
    begins = now.state.step is Step.SHUFFLE_NEEDED
    events = (e.ShuffleStarted(SHUFFLER),) if begins else ()
    return TableInput(events, notes=noted(told, source, now).notes)


def done(
    ear: IntakeContext, now: TableSnapshot, told: shuffler.ShuffleDone, source: DeviceSource
) -> TableInput:
    """What it counts against what the decks hold is the procedure's to judge."""
    notes = noted(told, source, now).notes
    if now.state.step in WORKING and not told.rng_ok:
        why = "its random numbers failed their test: the cards are not shuffled"
        return TableInput(notes=notes, wrong=(device_fault(source, "random", why),))
    missing, extra = _apart(ear.game, now, told.count)
    if not _of_a_round(now):  # else the cards on the felt are missing, which is no news
        missing, extra = max(missing, told.missing), max(extra, told.extra)
    return TableInput(_counted(now, missing, extra), notes=notes)


def miscounted(
    ear: IntakeContext, now: TableSnapshot, told: shuffler.CountWrong, source: DeviceSource
) -> TableInput:
    """It has not said that they are shuffled. In a round they are too few for it, and the dealer
    shuffles: so many as there are to be are right."""
    notes = noted(told, source, now).notes
    missing, extra = _apart(ear.game, now, told.got)
    if not missing and not extra:
        if _of_a_round(now):
            return TableInput(notes=notes)
        # It was told of other decks than these.
        missing = max(told.expected - told.got, 0)
        extra = max(told.got - told.expected, 0)
    return TableInput(_counted(now, missing, extra), notes=notes)


def door(
    ear: IntakeContext, now: TableSnapshot, told: shuffler.DoorMoved, source: DeviceSource
) -> TableInput:
    """Open, it is in the way of a shuffle that has begun, and of nothing else: cards go in and out
    by it."""
    note = noted(told, source, now)
    wrong = told.open and now.recall.shuffling and now.state.step in WORKING
    if told.open and not wrong:
        return note
    return wrong_or_right(source, "door", "its door is open", wrong=wrong, note=note)


def jam(
    ear: IntakeContext, now: TableSnapshot, told: shuffler.ShufflerJammed, source: DeviceSource
) -> TableInput:
    wrong = told.code is not JamCode.CLEARED
    why = f"cards are stuck ({told.code.name.lower()})"
    return wrong_or_right(source, "jam", why, wrong=wrong, note=noted(told, source, now))
