"""The deal, blackjacks that may decline their pay, and payments with the deal."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import (
    LONGEST_COMMITMENT,
    CardDrawn,
    Go,
    HoleDealt,
    PayDeclined,
    PayTaken,
)
from controller.procedure.model.felt import fresh, lay, next_spare, put, tally_drawn
from controller.procedure.model.game import Game
from controller.procedure.model.payments import paid_with_the_deal, with_the_deal
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import State, Step, elsewhere
from controller.rules.hands import DOUBLE, Hand, ace_and_ten, choices
from controller.rules.options import Options

# The deal


def _more(s: State) -> bool:
    return s.dealt + 1 < len(s.places)


def _face_up_next(s: State) -> bool:
    return s.places[s.dealt].kind != "hole"


def _deals_on(g: Game, s: State, e: CardDrawn) -> bool:
    return _face_up_next(s) and _more(s) and fresh(g, s, e)


def _deals_last(g: Game, s: State, e: CardDrawn) -> bool:
    return _face_up_next(s) and not _more(s) and fresh(g, s, e)


def _dealt(g: Game, s: State, e: CardDrawn) -> State:
    return lay(s, s.places[s.dealt], e.card, tally_drawn(s, e), None)


def _dealt_out(g: Game, s: State, e: CardDrawn) -> State:
    return mark_naturals(_dealt(g, s, e))


def _hole_next(s: State, e: HoleDealt) -> bool:
    spare = next_spare(s)
    right_card = e.spare is (spare is not None) and (
        spare is None or e.commitment == spare.commitment
    )
    return (
        right_card
        and s.places[s.dealt].kind == "hole"
        and 0 < len(e.commitment) <= LONGEST_COMMITMENT
    )


def _hole_then_more(g: Game, s: State, e: HoleDealt) -> bool:
    return _more(s) and _hole_next(s, e)


def _hole_last(g: Game, s: State, e: HoleDealt) -> bool:
    return not _more(s) and _hole_next(s, e)


def _hole_dealt(g: Game, s: State, e: HoleDealt) -> State:
    return replace(s, hole=e.commitment, dealt=s.dealt + 1, spare=None if e.spare else s.spare)


def _hole_dealt_out(g: Game, s: State, e: HoleDealt) -> State:
    return mark_naturals(_hole_dealt(g, s, e))


def mark_naturals(s: State) -> State:
    """Marks the dealt blackjacks as done: they have no decision to make."""
    for turn, hand in enumerate(s.hands):
        if hand.total == 21 and ace_and_ten(hand):
            s = replace(s, hands=put(s, turn, replace(hand, natural=True, done=True)))
    return s


# A blackjack that may decline its pay


def _natural_doubles(o: Options) -> bool:
    return o.double.natural


def _may_decline(g: Game, s: State, hand: Hand) -> bool:
    open_to_it = hand.natural and not hand.kept and not hand.out and hand.seat not in s.quiet
    return open_to_it and bool(choices(g.options, hand, 1) & DOUBLE)


def _payable_now(g: Game, s: State, hand: Hand) -> bool:
    """Whether the hand is paid next, so that its pay can be declined now."""
    return paid_with_the_deal(g, s, hand) or not dealer_will_check(g, s)


def dealer_will_check(g: Game, s: State) -> bool:
    return s.checked is None and s.up in g.peeks and bool(s.hole)


def next_to_decline(g: Game, s: State) -> int:
    if not g.options.double.natural:
        return -1
    for turn, hand in enumerate(s.hands):
        if _may_decline(g, s, hand) and _payable_now(g, s, hand):
            return turn
    return -1


def _asked_before_check(g: Game, s: State, e: PayTaken | PayDeclined) -> bool:
    return s.checked is None and e.seat == s.hands[s.turn].seat


def _asked_after_check(g: Game, s: State, e: PayTaken | PayDeclined) -> bool:
    return s.checked is not None and e.seat == s.hands[s.turn].seat


def _pay_taken(g: Game, s: State, e: PayTaken) -> State:
    return replace(s, hands=put(s, s.turn, replace(s.hands[s.turn], kept=True)))


def _pay_declined(g: Game, s: State, e: PayDeclined) -> State:
    return replace(s, hands=put(s, s.turn, replace(s.hands[s.turn], natural=False, done=False)))


# Payments with the deal


def _pays_with_deal(g: Game, s: State, e: Go) -> bool:
    if nothing_with_deal(g, s):
        return False
    return next_to_decline(g, s) < 0 and bool(with_the_deal(g, s))


def nothing_with_deal(g: Game, s: State) -> bool:
    """Whether the deal has no question and no payment left."""
    if s.step is Step.OFFER:
        return True
    for hand in s.hands:
        if hand.natural:
            return next_to_decline(g, s) < 0 and not with_the_deal(g, s)
    for seat in s.seats:
        if seat.amount("diamond"):
            return False
    return True


def _natural_detail(g: Game, s: State, e: PayTaken | PayDeclined) -> dict[str, str]:
    return {"seat": str(e.seat), "asked": str(s.hands[s.turn].seat)}


ROWS = (
    Row(
        "deal_card",
        (Step.DEALING,),
        CardDrawn,
        Step.DEALING,
        "The card is dealt face up to its place; the next place is named.",
        when=_deals_on,
        do=_dealt,
        rule=(
            "classic.deal2",
            "classic.deal3",
            "classic.deal5",
            "maxtime.intro2",
            "sf21x.3",
            "mega.deal1",
            "mega.rules",
            "sf21x.intro1",
            "classic.intro2",
        ),
    ),
    Row(
        "deal_last_card",
        (Step.DEALING,),
        CardDrawn,
        Step.AFTER_DEAL,
        "The deal's last card comes face up, because a seat gets its second card late or the "
        "dealer's was missed.",
        when=_deals_last,
        do=_dealt_out,
    ),
    Row(
        "deal_hole",
        (Step.DEALING,),
        HoleDealt,
        Step.AFTER_DEAL,
        "The dealer's second card is dealt face down: the hole card. The deal is complete.",
        when=_hole_last,
        do=_hole_dealt_out,
        why="the next card of the deal goes to another place",
        rule=(
            "classic.deal3",
            "maxtime.intro2",
            "sf21x.3",
        ),
    ),
    Row(
        "deal_hole_early",
        (Step.DEALING,),
        HoleDealt,
        Step.DEALING,
        "The dealer's hole card is dealt; a seat still waits for its second card.",
        when=_hole_then_more,
        do=_hole_dealt,
        why="the next card of the deal goes to another place",
    ),
    Row(
        "ask_natural",
        (Step.AFTER_DEAL, Step.AFTER_CHECK),
        Go,
        Step.NATURALS,
        "A blackjack that may be doubled is asked before it is paid.",
        when=lambda g, s, e: next_to_decline(g, s) >= 0,
        do=lambda g, s, e: replace(s, turn=next_to_decline(g, s)),
        needs=_natural_doubles,
    ),
    Row(
        "pay_taken",
        (Step.NATURALS,),
        PayTaken,
        Step.AFTER_DEAL,
        "The player takes the blackjack's pay.",
        when=_asked_before_check,
        do=_pay_taken,
        needs=_natural_doubles,
    ),
    Row(
        "pay_taken_after_check",
        (Step.NATURALS,),
        PayTaken,
        Step.AFTER_CHECK,
        "The player takes the blackjack's pay.",
        when=_asked_after_check,
        do=_pay_taken,
        needs=_natural_doubles,
    ),
    Row(
        "pay_declined",
        (Step.NATURALS,),
        PayDeclined,
        Step.AFTER_DEAL,
        "The player declines the pay: the hand is an ordinary 21 and is played in its turn.",
        when=_asked_before_check,
        do=_pay_declined,
        needs=_natural_doubles,
    ),
    Row(
        "pay_declined_after_check",
        (Step.NATURALS,),
        PayDeclined,
        Step.AFTER_CHECK,
        "The player declines the pay: the hand is an ordinary 21 and is played in its turn.",
        when=_asked_after_check,
        do=_pay_declined,
        needs=_natural_doubles,
    ),
    Row(
        "pay_with_deal",
        (Step.AFTER_DEAL,),
        Go,
        Step.PAYING,
        "Blackjacks that are paid whatever the dealer holds are paid before any other play and "
        "their cards are taken; the diamond bets are settled with them.",
        when=_pays_with_deal,
        do=lambda g, s, e: replace(s, due=with_the_deal(g, s), after=Step.OFFER),
        rule=(
            "maxtime.1a",
            "maxtime.1b",
            "maxtime.7b",
            "maxtime.7c",
            "sf21x.2",
            "sf21x.4",
            "sf21x.4a2",
            "mega.8",
            "mega.deal2",
            "mega.pay1",
            "sf21x.6",
            "classic.wagers2",
        ),
    ),
)


REFUSALS = (
    Refusal(
        "natural_not_asked",
        (Step.NATURALS,),
        PayTaken,
        "seat {seat} is not asked now: seat {asked} is",
        None,
        _natural_detail,
    ),
    Refusal(
        "natural_not_asked",
        (Step.NATURALS,),
        PayDeclined,
        "seat {seat} is not asked now: seat {asked} is",
        None,
        _natural_detail,
    ),
    *(
        Refusal("no_natural_asked", elsewhere(Step.NATURALS), event, "no blackjack is asked now")
        for event in (PayTaken, PayDeclined)
    ),
    Refusal(
        "no_hole_card_now",
        elsewhere(Step.DEALING),
        HoleDealt,
        "no hole card is dealt now",
    ),
)
