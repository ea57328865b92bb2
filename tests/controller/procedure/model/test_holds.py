"""What no hold is put for shows by an event or a refusal: each of these has rows of its own."""

from __future__ import annotations

from controller.procedure.engine import EVENTS, REFUSALS
from controller.procedure.model.events import WagerPlaced
from controller.procedure.model.holds import REFUSED, TAKEN
from controller.rules.irregularities import FIXED


def test_all_that_is_fixed_shows_and_nothing_else() -> None:
    assert {*TAKEN.values(), *REFUSED.values()} == FIXED


def test_the_events_and_refusals_are_there() -> None:
    assert set(TAKEN) <= {event.__name__ for event in EVENTS}
    wagers = {one.id for one in REFUSALS if one.event is WagerPlaced}
    assert set(REFUSED) <= wagers
