"""The table's loop: recorded first, then true, then shown and answered; one thing at a time."""

from __future__ import annotations

import pytest

from controller.procedure.model import events as e
from controller.procedure.model.effects import ShoeLock
from controller.procedure.model.state import Step
from controller.table.intake import CONTROLLER, TableInput
from controller.table.loop import TableStopped
from tests.support.asynchronous import simulated
from tests.support.table.loop_rig import NOTE, opens, rig
from tests.support.table.simulated.simulated_table import DEALER, FLOOR
from tests.support.table.typed.listening import LIVE, card, source, states


@simulated
async def test_nobody_does_anything_before_the_first_word() -> None:
    async with rig(Step.TURN, waits="started") as made:
        assert made.table.shown.stopped == "started"
        with pytest.raises(TableStopped, match="started"):
            await made.table.act(opens)
        await made.table.record(NOTE)
        # What had happened before is heard, at the step at which it happened.
        await made.table.device_event(card(3), source())
        assert made.table.shown.stopped == "started"
        await made.table.first(TableInput((e.ControllerRestarted(CONTROLLER),)))
        assert made.table.shown.stopped == ""
        assert made.step() is Step.FELT
        done = await made.table.act(lambda now: TableInput((e.FeltConfirmed(DEALER),)))
        assert made.step() is not Step.FELT
        assert done.entries[0].kind == "decision"


@simulated
async def test_a_payment_that_is_shown_again_says_so() -> None:
    async with rig(Step.PAYING, waits="started", repeated=True) as made:
        assert made.again()
        await made.table.first(TableInput((e.ControllerRestarted(CONTROLLER),)))
        assert not made.again()
        await made.table.act(lambda now: TableInput((e.FeltConfirmed(DEALER),)))
        assert made.table.shown.state.step is Step.PAYING
        assert made.again()
        due = made.table.state.due[0]
        events = (e.PaymentApproved(FLOOR),) if due.floor else ()
        await made.table.act(lambda now: TableInput((*events, e.Paid(DEALER, due.moves))))
        assert not made.again()


def test_the_shoe_is_open_only_where_a_card_may_come() -> None:
    for s in states():
        locks = [one.locked for one in LIVE.shows(s) if isinstance(one, ShoeLock)]
        takes_cards = s.step in (
            Step.BURNING,
            Step.RELIEF_BURN,
            Step.DEALING,
            Step.HAND_CARD,
            Step.DEALER_CARD,
            Step.DEALER_LATE,
            Step.WAGERING,
        )
        assert locks, s.step
        assert takes_cards or all(locks), s.step
