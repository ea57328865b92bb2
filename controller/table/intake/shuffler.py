"""Readers of the shuffler's events.

The table decides how many cards a shuffle must have: all of its decks, or all except those on the
felt if the shoe ran out in a round. A table with a shuffler takes the end of a shuffle from the
shuffler, which counts the cards. A wrong count that is reported after cards were dealt raises a
suspicion about the decks in play.
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
from drivers.devices import CountWrong, DoorMoved, ShuffleDone, ShuffleStarted

WORKING: Final = (Step.SHUFFLING, Step.REFILL)
_NO_CARDS: Final = (Step.CLOSED, Step.SHUFFLE_NEEDED)
"""Steps before which all cards are shuffled and counted again."""


def by_hand(context: IntakeContext, now: TableSnapshot) -> bool:
    """Whether people report the end of a shuffle: there is no shuffler, its faults were accepted by
    two people, or it has not begun to shuffle the discards of a round, which are too few for it."""
    if not context.shuffler or now.faults.taken_as_it_is("shuffler"):
        return True
    return now.state.step is Step.REFILL and not now.memory.shuffling


def _of_a_round(now: TableSnapshot) -> bool:
    """Whether the counted cards are the discards of a round."""
    step = stopped_at(now.state)
    return step is Step.REFILL or (step not in BEFORE and now.memory.again)


def expected_count(g: Game, now: TableSnapshot) -> int:
    """The number of cards of the current shuffle, or of the last one; 0 if it is unknown."""
    if not _of_a_round(now):
        return g.decks * 52
    refills = stopped_at(now.state) is Step.REFILL
    return discards(g, now.state) if refills else now.memory.count


def _difference(g: Game, now: TableSnapshot, count: int) -> tuple[int, int]:
    """How many cards are missing, and how many are too many."""
    whole = expected_count(g, now)
    return (max(whole - count, 0), max(count - whole, 0)) if whole else (0, 0)


def _counted(now: TableSnapshot, missing: int, extra: int) -> tuple[Event, ...]:
    """The end of the current shuffle; without one, a suspicion about the decks in play."""
    s = now.state
    if s.step in WORKING:
        return (e.ShuffleDone(SHUFFLER, missing, extra),)
    if stopped_at(s) in _NO_CARDS or not (missing or extra):
        return ()
    return (e.DeckSuspect(SHUFFLER, "short" if missing else "long"),)


def started(
    context: IntakeContext, now: TableSnapshot, event: ShuffleStarted, source: DeviceSource
) -> TableInput:
    """Started by the shuffler's own button if the table waits for a shuffle; else on request."""
    begins = now.state.step is Step.SHUFFLE_NEEDED
    events = (e.ShuffleStarted(SHUFFLER),) if begins else ()
    return TableInput(events)


def done(
    context: IntakeContext, now: TableSnapshot, event: ShuffleDone, source: DeviceSource
) -> TableInput:
    """Differences of the count are passed to the procedure, which rules on them."""
    if now.state.step in WORKING and not event.rng_ok:
        why = "its random numbers failed their test: the cards are not shuffled"
        return TableInput(wrong=(source.fault("random", why),))
    missing, extra = _difference(context.game, now, event.count)
    if not _of_a_round(now):  # in a round the shuffler misses the cards on the felt
        missing, extra = max(missing, event.missing), max(extra, event.extra)
    return TableInput(_counted(now, missing, extra))


def miscounted(
    context: IntakeContext, now: TableSnapshot, event: CountWrong, source: DeviceSource
) -> TableInput:
    """The shuffler counted an unexpected number and did not shuffle. The discards of a round are
    too few for it; if their number is right, the dealer shuffles them."""
    missing, extra = _difference(context.game, now, event.got)
    if not missing and not extra:
        if _of_a_round(now):
            return TableInput()
        # It was configured for other decks than the table's.
        missing = max(event.expected - event.got, 0)
        extra = max(event.got - event.expected, 0)
    return TableInput(_counted(now, missing, extra))


def door(
    context: IntakeContext, now: TableSnapshot, event: DoorMoved, source: DeviceSource
) -> TableInput:
    """An open door is a fault only during a shuffle: cards go in and out through it."""
    if event.open and not (now.memory.shuffling and now.state.step in WORKING):
        return TableInput()
    return source.fault_input("door", "its door is open", active=event.open)
