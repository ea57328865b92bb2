"""The dealer's hand, all payments, and the end of the round."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.effects import Burned, Effect, RoundOver
from controller.procedure.model.events import (
    AllPaid,
    CardDrawn,
    Cleared,
    Go,
    HoleRevealed,
    Paid,
    PaymentApproved,
)
from controller.procedure.model.felt import fresh, times_seen, to_dealer
from controller.procedure.model.game import Game
from controller.procedure.model.payments import BUSTERS, facts, settle, settlement
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Due, State, Step, elsewhere
from controller.rules.cards import VALUE, Card
from controller.rules.hands import is_blackjack, plus
from controller.rules.payouts import dealer_draws

# The hole card turned over


def hole_card(s: State, e: HoleRevealed) -> Card:
    """Returns the card that the floor confirmed, or the shoe's reading if it was not in doubt."""
    return e.card if s.read < 0 else s.read


def agrees_with_check(s: State, e: HoleRevealed) -> bool:
    return s.checked is None or s.checked == is_blackjack(s.dealer[0], hole_card(s, e))


def hole_is_fresh(g: Game, s: State, e: HoleRevealed) -> bool:
    return s.read >= 0 or times_seen(s, e.card) < g.decks


def _reveals(g: Game, s: State, e: HoleRevealed) -> bool:
    return hole_is_fresh(g, s, e) and agrees_with_check(s, e)


def _revealed(g: Game, s: State, e: HoleRevealed) -> State:
    card = hole_card(s, e)
    total, soft = plus(s.dealer_total, s.dealer_soft, card)
    return replace(
        s,
        dealer=(*s.dealer, card),
        dealer_total=total,
        dealer_soft=soft,
        hole="",
        seen=s.seen if s.read >= 0 else s.seen + (1 << 4 * card),
        read=-1,
    )


def _late_more(g: Game, s: State, e: CardDrawn) -> bool:
    return fresh(g, s, e) and s.late > 1


def _late_last(g: Game, s: State, e: CardDrawn) -> bool:
    return fresh(g, s, e) and s.late == 1


def _late_card(g: Game, s: State, e: CardDrawn) -> State:
    late = to_dealer(g, s, e)
    return replace(late, late=s.late - 1, up=s.up or VALUE[e.card])


# The dealer's hand


def depends(g: Game, s: State) -> bool:
    """Whether a hand or Buster wager on the felt depends on the dealer's cards."""
    takes_blackjacks = g.can_push and g.waits_for_settlement
    for hand in s.hands:
        if not hand.out and (takes_blackjacks or not hand.natural):
            return True
    for seat in s.seats:
        if any(map(seat.amount, BUSTERS)):
            return True
    return False


def _must_draw(g: Game, s: State) -> bool:
    return dealer_draws(g.options, s.dealer_total, soft=s.dealer_soft)


def _draws(g: Game, s: State, e: Go) -> bool:
    return _must_draw(g, s) and depends(g, s)


def _settles(g: Game, s: State, e: Go) -> bool:
    return not _draws(g, s, e) and on_the_felt(s)


def _only_shown(g: Game, s: State, e: Go) -> bool:
    return not _draws(g, s, e) and not on_the_felt(s)


def on_the_felt(s: State) -> bool:
    """Whether a wager is unsettled."""
    for hand in s.hands:
        if not hand.out:
            return True
    for seat in s.seats:
        if seat.insurance or any(map(seat.amount, BUSTERS)):
            return True
    return False


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


ROWS: tuple[Row, ...] = (
    Row(
        "reveal_hole",
        (Step.REVEAL,),
        HoleRevealed,
        Step.DEALER_EVALUATE,
        "The dealer turns the hole card over.",
        when=_reveals,
        do=_revealed,
        rule=(
            "classic.dealer1",
            "classic.deal4",
        ),
    ),
    Row(
        "late_card",
        (Step.DEALER_LATE,),
        CardDrawn,
        Step.DEALER_LATE,
        "The dealer gets a card that was missed; another one follows.",
        when=_late_more,
        do=_late_card,
    ),
    Row(
        "late_last_card",
        (Step.DEALER_LATE,),
        CardDrawn,
        Step.DEALER_EVALUATE,
        "The dealer has the cards that were missed.",
        when=_late_last,
        do=_late_card,
    ),
    Row(
        "dealer_must_draw",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.DEALER_CARD,
        "A hand or a Buster wager depends on the dealer's hand, and its total must draw.",
        when=_draws,
        rule=(
            "classic.dealer2",
            "classic.dealer3",
            "classic.rule1",
            "maxtime.6",
            "sf21x.intro2",
            "mega.1",
            "mega.buster5",
            "mega.buster6",
        ),
    ),
    Row(
        "dealer_card",
        (Step.DEALER_CARD,),
        CardDrawn,
        Step.DEALER_EVALUATE,
        "The dealer draws a card.",
        when=fresh,
        do=to_dealer,
        rule=("classic.dealer2",),
    ),
    Row(
        "settle",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.PAYING,
        "The dealer's hand is complete: insurance that won is paid first, then what lies on the "
        "felt is settled in the house's order, hand by hand, with the seat's Buster and toke "
        "bets.",
        when=_settles,
        do=lambda g, s, e: replace(s, due=settlement(g, s), after=Step.CLEARING),
        rule=(
            "classic.dealer4",
            "classic.dealer5",
            "classic.intro1",
            "classic.play3",
            "classic.wagers2",
            "classic.insurance3",
            "maxtime.6",
            "sf21x.13a",
            "sf21x.13b",
            "mega.6",
            "mega.7",
            "mega.7note",
            "mega.9",
            "mega.pay2",
            "mega.pay3",
            "mega.pay4",
            "mega.pay5",
            "mega.pay6",
            "mega.buster2",
            "mega.buster3",
            "mega.buster4",
            "mega.toke2",
            "mega.deal4",
            "sf21x.4a",
            "sf21x.4a3",
            "sf21x.7a",
            "maxtime.1d",
            "mega.intro2",
            "mega.3",
            "mega.8",
        ),
    ),
    Row(
        "hole_only_shown",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.CLEARING,
        "Nothing on the felt depends on the dealer: the hole card is only shown.",
        when=_only_shown,
    ),
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
        when=lambda g, s, e: s.due[0].floor and not s.approved,
        do=lambda g, s, e: replace(s, approved=True),
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

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "no_reveal_now",
        elsewhere(Step.REVEAL),
        HoleRevealed,
        "the hole card stays face down now",
    ),
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
        Refusal("nothing_due", elsewhere(Step.PAYING), event, "no payment is due now")
        for event in (Paid, AllPaid, PaymentApproved)
    ),
    Refusal(
        "not_to_clear",
        elsewhere(Step.CLEARING),
        Cleared,
        "the cards stay on the felt until every wager is settled",
    ),
)
