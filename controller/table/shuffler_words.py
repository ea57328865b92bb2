"""What the shuffler tells, in the procedure's words. How many cards there are to be is the
table's to say: all of its decks, or in a round whose shoe ran out all but those on the felt."""

from __future__ import annotations

from controller.procedure import events as e
from controller.procedure.felt import discards
from controller.procedure.game import Game
from controller.procedure.states import State, Step
from controller.table.hearing import SHUFFLER, Ear, Heard, Now, Source
from controller.table.shoe_words import noted, trouble, wrong_or_right
from drivers import shuffler
from firmware_protocol.enums import JamCode

_WORKING = (Step.SHUFFLING, Step.REFILL)


def wanted(g: Game, s: State) -> int:
    """So many cards come out of the shuffle that is wanted now."""
    return discards(g, s) if s.step is Step.REFILL else g.decks * 52


def started(ear: Ear, now: Now, told: shuffler.ShuffleStarted, source: Source) -> Heard:
    """Begun by its own button, where the table waits for it; else it is what was asked for."""
    begins = now.state.step is Step.SHUFFLE_NEEDED
    events = (e.ShuffleStarted(SHUFFLER),) if begins else ()
    return Heard(events, notes=noted(told, source, now).notes)


def done(ear: Ear, now: Now, told: shuffler.ShuffleDone, source: Source) -> Heard:
    """What it counts against what the decks hold is the procedure's to judge."""
    s, notes = now.state, noted(told, source, now).notes
    if s.step not in _WORKING:
        return Heard(notes=notes)
    if not told.rng_ok:
        why = "its random numbers failed their test: the cards are not shuffled"
        return Heard(notes=notes, wrong=(trouble(source, "random", why),))
    short = wanted(ear.game, s) - told.count
    missing, extra = max(short, 0), max(-short, 0)
    if s.step is Step.SHUFFLING:  # else the cards on the felt are missing, which is no news
        missing, extra = max(missing, told.missing), max(extra, told.extra)
    return Heard((e.ShuffleDone(SHUFFLER, missing, extra),), notes=notes)


def miscounted(ear: Ear, now: Now, told: shuffler.CountWrong, source: Source) -> Heard:
    """It has not said that they are shuffled. In a round they are too few for it, and the dealer
    shuffles."""
    s, notes = now.state, noted(told, source, now).notes
    if s.step is not Step.SHUFFLING:
        return Heard(notes=notes)
    short = wanted(ear.game, s) - told.got
    missing, extra = max(short, 0), max(-short, 0)
    if not missing and not extra:  # it was told of other decks than these
        missing = max(told.expected - told.got, 0)
        extra = max(told.got - told.expected, 0)
    return Heard((e.ShuffleDone(SHUFFLER, missing, extra),), notes=notes)


def door(ear: Ear, now: Now, told: shuffler.DoorMoved, source: Source) -> Heard:
    """Open, it is in the way of a shuffle that has begun, and of nothing else: cards go in and out
    by it."""
    note = noted(told, source, now)
    wrong = told.open and now.recall.shuffling and now.state.step in _WORKING
    if told.open and not wrong:
        return note
    return wrong_or_right(source, "door", "its door is open", wrong=wrong, note=note)


def jam(ear: Ear, now: Now, told: shuffler.ShufflerJammed, source: Source) -> Heard:
    wrong = told.code is not JamCode.CLEARED
    why = f"cards are stuck ({told.code.name.lower()})"
    return wrong_or_right(source, "jam", why, wrong=wrong, note=noted(told, source, now))
