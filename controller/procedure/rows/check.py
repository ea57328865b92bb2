"""The check of the hole card: one bit, and the payments that follow from it."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import Go, HoleChecked
from controller.procedure.model.game import Game
from controller.procedure.model.payments import lost_insurance, waiting_blackjacks
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import WAITING, State, Step
from controller.procedure.rows.deal import next_to_decline


def _no_blackjack(g: Game, s: State, e: HoleChecked) -> bool:
    return not e.blackjack


def _blackjack(g: Game, s: State, e: HoleChecked) -> bool:
    return e.blackjack


def _checked(g: Game, s: State, e: HoleChecked) -> State:
    return replace(s, checked=e.blackjack)


def _anything_after_check(g: Game, s: State) -> bool:
    for seat in s.seats:
        if seat.insurance:
            return True
    for hand in s.hands:
        if hand.natural and not hand.out and not g.waits_for_settlement:
            return True
    return False


def _pays_after_check(g: Game, s: State, e: Go) -> bool:
    return next_to_decline(g, s) < 0 and _anything_after_check(g, s)


def _after_check(g: Game, s: State, e: Go) -> State:
    dues = lost_insurance(g, s) + waiting_blackjacks(g, s)
    return replace(s, due=dues, after=Step.NEXT_HAND)


def _play_after_check(g: Game, s: State, e: Go) -> bool:
    return next_to_decline(g, s) < 0 and not _anything_after_check(g, s)


ROWS = (
    Row(
        "no_dealer_blackjack",
        (Step.CHECK,),
        HoleChecked,
        Step.AFTER_CHECK,
        "The hole card makes no blackjack: play goes on.",
        when=_no_blackjack,
        do=_checked,
        rule=("sf21x.5", "classic.insurance4"),
    ),
    Row(
        "dealer_blackjack",
        (Step.CHECK,),
        HoleChecked,
        Step.REVEAL,
        "The dealer has a blackjack: it is shown at once and ends the round.",
        when=_blackjack,
        do=_checked,
        rule=("sf21x.4a", "sf21x.5", "mega.8"),
    ),
    Row(
        "settle_after_check",
        (Step.AFTER_CHECK,),
        Go,
        Step.PAYING,
        "Losing insurance is collected; then the blackjacks that waited for the check are paid "
        "and their cards are taken.",
        when=_pays_after_check,
        do=_after_check,
        rule=(
            "classic.insurance4",
            "classic.insurance5",
            "mega.8",
            "mega.pay1",
            "sf21x.4",
            "maxtime.1d",
            "sf21x.6",
            "mega.deal2",
            "classic.wagers2",
        ),
    ),
    Row(
        "play_after_check",
        (Step.AFTER_CHECK,),
        Go,
        Step.NEXT_HAND,
        "The check changes nothing on the felt: the players play.",
        when=_play_after_check,
        rule=(
            "maxtime.4d",
            "sf21x.5",
        ),
    ),
)


REFUSALS = (
    Refusal(
        "no_check_now",
        tuple(step for step in WAITING if step is not Step.CHECK),
        HoleChecked,
        "the hole card is not to be checked now",
    ),
)
