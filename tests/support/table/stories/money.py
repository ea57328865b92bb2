"""Payments that were wrong, that are declared or wait for the floor; limits, caps and whose wagers
they are: over the wire and in each house."""

from typing import Any

from controller.procedure.model import events
from controller.procedure.model.effects import (
    Corrected,
    Settled,
    Tell,
    WagersLocked,
)
from controller.procedure.model.events import Actor
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.intake import TableInput
from tests.support.asynchronous import in_turn
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.simulated.telling import DEAL, WON, Told, irregular

# --- wrong payment found later, hand settled wrongly ------------------------------------------


def correction(**more: Any) -> dict[str, Any]:
    return {"round": 1, "seat": 1, "hand": 0, "bet": "main", "paid": 500, "due": 1000, **more}


@irregular(Odd.WRONG_PAYMENT, "correct_payment", ways=(Way.CORRECT,), nets=None)
async def a_wrong_payment_that_is_found_later(t: Told, way: Way) -> None:
    """A new record that points at the old one; nothing else moves."""
    await t.to_step(Step.TURN)
    await t.ends(WON)
    settled = t.facts(Settled)
    for second, fields in (
        (None, correction()),
        (Actor("surveillance", FLOOR.name), correction()),
        (SECOND, correction(paid=1000)),
        (SECOND, correction(round=2)),
    ):
        refused = await t.refuses("PaymentCorrected", FLOOR, second, **fields)
        assert refused.startswith("correct_payment")
    assert await t.refuses("PaymentCorrected", DEALER, SECOND, **correction()) == "not_theirs"
    before = t.state
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction())
    assert t.state == before
    corrected = Corrected(1, 1, 0, "main", 500, 1000, "Flo", "Bob")
    assert t.facts(Corrected) == [corrected]
    assert t.facts(Settled) == settled  # both amounts stand in the record
    assert t.room.records("decision")[-1].round == 1


@irregular(Odd.WRONG_PAYMENT, "correct_payment", ways=(Way.CORRECT,), nets=None)
async def a_hand_that_was_settled_wrongly(t: Told, way: Way) -> None:
    """Found in the next round, and while the table is held."""
    await in_turn(
        t.to_step(Step.TURN),
        t.to_end(),
        t.to_step(Step.TURN),
        t.does("FloorCalled"),
        t.does("PaymentCorrected", FLOOR, SECOND, **correction(seat=2, paid=1000, due=0)),
        t.stands(Step.HELD),
        t.does("FloorRuled", FLOOR, way="resume"),
        t.to_end(),
    )
    assert t.facts(Corrected) == [Corrected(1, 2, 0, "main", 1000, 0, "Flo", "Bob")]


@irregular(Odd.WRONG_PAYMENT, "declared_wrong", "correct_payment", strict=(Way.CORRECT,), nets=None)
async def a_payment_that_is_declared_wrongly(t: Told, way: Way) -> None:
    """The dealer declares it, then the controller compares."""
    await in_turn(
        t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1),
        t.shows("Seat 1 - 20 beats the dealer - pays 1 to 1 - $10 on $10"),
        t.refused("declared_wrong", "Paid"),
    )
    assert t.data("refusal")[-1]["why"] == "seat 1: nothing was declared; count again"
    assert await t.refuses("Paid", amount=1500) == "declared_wrong"
    assert t.data("refusal")[-1]["event"]["amount"] == 1500  # what was declared stands there too
    await in_turn(
        t.refused("pay_all", "AllPaid"),
        t.does("Paid", amount=1000),
        t.to_end(),
        t.does("PaymentCorrected", FLOOR, SECOND, **correction(paid=1000, due=1500)),
    )


# --- from a certain amount on a payment waits for the floor -----------------------------------


@irregular(
    Odd.WRONG_PAYMENT,
    "floor_first",
    "approve_payment",
    "correct_payment",
    ways=(Way.CORRECT,),
    options={"payout.floor_from": 100_000},
    wagers=((1, "main", 100_000), (2, "main", 99_900)),
    cards=("Kc", "Qc", "8s", "Kh", "Qh", "Td"),
    plan={},
    nets=None,
)
async def a_payment_that_waits_for_the_floor(t: Told, way: Way) -> None:
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 2)
    assert t.prompt.tell is Tell.PAY
    await in_turn(
        t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1),
        t.shows(
            "Floor: seat 1 - 20 beats the dealer - pays 1 to 1 - $1,000 on $1,000 - see it before "
            "it is paid"
        ),
        t.refused("floor_first", "Paid", amount=100_000),
        t.refused("not_theirs", "PaymentApproved", DEALER),
        t.does("PaymentApproved", FLOOR),
        t.shows("Seat 1 - 20 beats the dealer - pays 1 to 1 - $1,000 on $1,000"),
        t.ends({1: 100_000, 2: 99_900}),
        t.does("PaymentCorrected", FLOOR, SECOND, **correction(paid=100_000, due=99_000)),
    )


@irregular(
    Odd.WRONG_PAYMENT,
    "correct_payment",
    ways=(Way.CORRECT,),
    options={"limits.table_payout": 1500},
    cards=("Kc", "Qc", "8s", "Kh", "Qh", "Td"),
    plan={},
    nets=None,
)
async def the_cap_of_a_round(t: Told, way: Way) -> None:
    """Shown before wagers lock; it cuts no payment, the floor sees what goes beyond it."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.shows("Take wagers: main - a round pays $15 at most without the floor"),
        t.to_deal(1),
    )
    assert t.facts(WagersLocked) == [WagersLocked(1, 2000, 1500)]
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 2)
    assert t.prompt.to == "dealer"
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1)
    assert (t.prompt.to, t.prompt.amount) == ("floor", 1000)
    await t.ends({1: 1000, 2: 1000})
    await t.does("PaymentCorrected", FLOOR, SECOND, **correction())


# --- limits, one main wager a seat, several seats of one player -------------------------------

LIMITS = {
    "limits.main.min": 1000,
    "limits.main.max": 50_000,
    "limits.main.step": 500,
    "limits.buster.max": 1000,
}


@irregular(
    Odd.LATE_WAGER,
    "below_minimum",
    "above_maximum",
    "off_step",
    "no_such_seat",
    "bet_not_offered",
    "not_an_amount",
    "late_wager",
    ways=(Way.REFUSE,),
    game="mega",
    options=LIMITS,
    nets=None,
)
async def limits_of_each_seat_and_bet(t: Told, way: Way) -> None:
    await t.to_step(Step.WAGERING)
    for seat, bet, amount, refused, why in (
        (1, "main", 500, "below_minimum", "seat 1: main bets start at 1000"),
        (1, "main", 50_500, "above_maximum", "seat 1: main bets go up to 50000"),
        (1, "main", 1250, "off_step", "seat 1: main bets go in steps of 500"),
        (8, "main", 1000, "no_such_seat", "seat 8: the table has seats 1 to 7"),
        (1, "diamond", 1000, "bet_not_offered", ""),
        (1, "main", 0, "not_an_amount", ""),
    ):
        assert await t.refuses("WagerPlaced", seat=seat, bet=bet, amount=amount) == refused
        assert t.data("refusal")[-1]["why"].startswith(why)
    await in_turn(
        t.does("WagerPlaced", seat=1, bet="main", amount=50_000),
        t.refused("above_maximum", "WagerPlaced", seat=1, bet="buster", amount=1100),
        t.does("WagerPlaced", seat=1, bet="buster", amount=1000),
        t.does("WagerPlaced", seat=1, bet="main", amount=1000),  # the limits hold for the first
        t.to_deal(1),
        t.refused("late_wager", "WagerPlaced", seat=2, bet="main", amount=1000),
    )


@irregular(Odd.LATE_WAGER, "other_seat", "late_wager", ways=(Way.REFUSE,), game="mega")
async def back_bets_are_refused(t: Told, way: Way) -> None:
    """One main wager a seat: another amount takes the place of the one that lies there, and from
    the station of another seat nothing is placed."""
    await t.to(lambda s: len(s.seats) == 2)
    t.robot.pending_wagers = []
    await t.does("WagerPlaced", seat=1, bet="main", amount=2500)
    assert [seat.main for seat in t.state.seats] == [2500, 1000]
    await said(t, events.WagerPlaced(Actor("player", "seat-3", 3), 1, "main", 500))
    assert t.data("refusal")[-1]["id"] == "other_seat"
    assert [seat.main for seat in t.state.seats] == [2500, 1000]
    await in_turn(
        t.does("WagerPlaced", seat=1, bet="main", amount=1000),
        t.to_deal(1),
        t.refused("late_wager", "WagerPlaced", seat=1, bet="main", amount=500),
    )


async def said(t: Told, event: events.Event) -> None:
    """Something that a seat's own buttons never say comes to the table all the same."""
    await t.table.table.act(lambda now: TableInput((event,)))


@irregular(
    Odd.OUT_OF_TURN,
    "not_in_turn",
    "out_of_turn",
    ways=(Way.RESUME,),
    game="mega",
    stations=True,
    wagers=((1, "main", 1000), (3, "main", 1000)),
    cards=(*DEAL, "9d", "3d"),
    plan={1: "hit stand", 3: "stand"},
    nets={1: 1000, 3: 0},
)
async def a_player_with_several_seats(t: Told, way: Way) -> None:
    """Each is decided in turn, with its own buttons, whoever sits there."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    assert "hit" not in t.armed(3)
    await in_turn(
        t.refused("not_in_turn", "Stand", seat=3, hand=0),
        t.does("PlayedOutOfTurn", seat=3),
        t.ruled(Odd.OUT_OF_TURN, way),
        t.to(lambda s: s.step is Step.TURN and s.hands[s.turn].seat == 3),
    )
    assert await t.lit(3, "hit")
    assert "hit" not in t.armed(1)
