"""Payments, and the end of the round."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.effects import Burned, Effect, RoundOver
from controller.procedure.model.events import AllPaid, Cleared, Go, Paid, PaymentApproved
from controller.procedure.model.game import Game
from controller.procedure.model.payments import facts, settle
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import WAITING, Due, State, Step

# Payments


def declared_wrong(g: Game, s: State, e: Paid) -> bool:
    if e.amount is None:
        return g.jurisdiction.declare_payments
    return e.amount != s.due[0].moves


def floor_first(g: Game, s: State, e: Paid) -> bool:
    return s.due[0].floor and not s.approved


def _may_pay(g: Game, s: State, e: Paid) -> bool:
    return not floor_first(g, s, e) and not declared_wrong(g, s, e)


def _pays_more(g: Game, s: State, e: Paid) -> bool:
    return len(s.due) > 1 and _may_pay(g, s, e)


def _pays_last(g: Game, s: State, e: Paid) -> bool:
    return len(s.due) == 1 and _may_pay(g, s, e)


def _paid(g: Game, s: State, e: Paid) -> State:
    return replace(settle(s, s.due[0]), due=s.due[1:], approved=False)


def _paid_fact(g: Game, s: State, e: Paid, after: State) -> tuple[Effect, ...]:
    return facts(s, s.due[0])


def all_at_once(g: Game, s: State, e: AllPaid) -> bool:
    if g.jurisdiction.declare_payments:
        return False
    for index, due in enumerate(s.due):
        if due.floor and not (s.approved and index == 0):
            return False
    return True


def _all_paid(g: Game, s: State, e: AllPaid) -> State:
    for due in s.due:
        s = settle(s, due)
    return replace(s, due=(), approved=False)


def _all_facts(g: Game, s: State, e: AllPaid, after: State) -> tuple[Effect, ...]:
    told: tuple[Effect, ...] = ()
    for due in s.due:
        told += facts(s, due)
    return told


def _may_approve(g: Game, s: State, e: PaymentApproved) -> bool:
    return s.due[0].floor and not s.approved


def _approved(g: Game, s: State, e: PaymentApproved) -> State:
    return replace(s, approved=True)


# The end of the round


def _over(g: Game, s: State, e: Cleared, after: State) -> tuple[Effect, ...]:
    over = RoundOver(s.round, s.won)
    if s.spare is None or not s.spare.exposed:
        return (over,)
    # The exposed card was refused by the players and of no use to the dealer.
    return (Burned(s.spare.card), over)


def _pay_detail(g: Game, s: State, e: Paid) -> dict[str, str]:
    due: Due = s.due[0]
    return {
        "seat": str(due.seat),
        "amount": g.say_amount(due.moves),
        "declared": "nothing" if e.amount is None else g.say_amount(e.amount),
    }


_PAYING = (Step.PAYING,)

_AFTER_PAYING = {
    Step.CLEARING: "Every wager is settled: the cards are picked up.",
    Step.NEXT_HAND: "Nothing is due: the next hand plays.",
    Step.NEXT_ROUND: "The wagers are back: other decks come, or the table closes.",
    Step.DEALING: "The dead hand's wagers are back: the deal goes on.",
    Step.AFTER_DEAL: "The dead hand's wagers are back, and no card of the deal is missing.",
    Step.INSURANCE: "The insurance is handed back: the seat is asked once more.",
    Step.OFFER: "What the deal itself decides is settled: insurance or the check comes next.",
    Step.CHECK: "Even money is paid: the hole card is checked.",
}


def _goes_to(step: Step) -> Row:
    return Row(
        f"paid_up_to_{step.value}",
        (Step.PAID_UP,),
        Go,
        step,
        _AFTER_PAYING[step],
        when=lambda g, s, e: s.after is step,
    )


ROWS = (
    Row(
        "pay",
        _PAYING,
        Paid,
        Step.PAYING,
        "The dealer made the first payment due; the next one follows.",
        when=_pays_more,
        do=_paid,
        effects=_paid_fact,
        rule=(
            "sf21x.4",
            "sf21x.12a",
            "mega.deal5",
        ),
    ),
    Row(
        "pay_last",
        _PAYING,
        Paid,
        Step.PAID_UP,
        "The dealer made the last payment due.",
        when=_pays_last,
        do=_paid,
        effects=_paid_fact,
        rule=(
            "sf21x.4",
            "sf21x.12a",
            "mega.deal5",
        ),
    ),
    Row(
        "pay_all",
        _PAYING,
        AllPaid,
        Step.PAID_UP,
        "The dealer made every payment due.",
        when=all_at_once,
        do=_all_paid,
        effects=_all_facts,
        why="a payment must be made by itself: it waits for the floor, or is to be declared",
        rule=(
            "sf21x.4",
            "sf21x.12a",
            "mega.deal5",
        ),
    ),
    Row(
        "approve_payment",
        _PAYING,
        PaymentApproved,
        Step.PAYING,
        "The floor has seen the payment.",
        when=_may_approve,
        do=_approved,
        why="no payment waits for the floor",
        rule=("classic.rule8",),
    ),
    *(_goes_to(step) for step in _AFTER_PAYING),
    Row(
        "clear",
        (Step.CLEARING,),
        Cleared,
        Step.NEXT_ROUND,
        "The cards left on the felt are picked up so that each hand can be rebuilt; the round "
        "is over.",
        effects=_over,
    ),
)

_NOT_PAYING = tuple(step for step in WAITING if step is not Step.PAYING)

REFUSALS = (
    Refusal(
        "floor_first",
        _PAYING,
        Paid,
        "seat {seat}: {amount} is paid when the floor has seen it",
        floor_first,
        _pay_detail,
    ),
    Refusal(
        "declared_wrong",
        _PAYING,
        Paid,
        "seat {seat}: {declared} was declared; count again",
        declared_wrong,
        _pay_detail,
    ),
    *(
        Refusal("nothing_due", _NOT_PAYING, event, "no payment is due now")
        for event in (Paid, AllPaid, PaymentApproved)
    ),
    Refusal(
        "not_to_clear",
        tuple(step for step in WAITING if step is not Step.CLEARING),
        Cleared,
        "the cards stay on the felt until every wager is settled",
    ),
)
