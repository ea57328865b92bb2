"""Insurance and even money, seat by seat, and the check of the hole card after them."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import (
    Confirmed,
    Decline,
    EvenMoney,
    Go,
    HoleChecked,
    InsuranceClosed,
    Insure,
    Withdrawn,
)
from controller.procedure.model.felt import with_seat
from controller.procedure.model.game import Game
from controller.procedure.model.payments import even_monies, lost_insurance, waiting_blackjacks
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Seat, State, Step, elsewhere
from controller.procedure.rows.deal import next_to_decline, nothing_with_deal
from controller.rules.cards import ACE
from controller.rules.money import Amount
from controller.rules.options import Options

# Insurance


def _ace_up_offer(g: Game, s: State) -> bool:
    """Whether insurance is offered: an ace is up and there is a hole card."""
    return s.up == ACE and g.insures and bool(s.hole)


def may_be_asked(g: Game, s: State, seat: Seat) -> bool:
    """Whether the seat is asked: it plays, even if its blackjack was paid already."""
    if (
        seat.answer
        or seat.number in s.quiet
        or not any(hand.seat == seat.number and len(hand.cards) == 2 for hand in s.hands)
    ):
        return False
    return max_insurance(g, seat) > 0 or may_take_even_money(g, s, seat.number)


def _next_asked(g: Game, s: State) -> int:
    for index, seat in enumerate(s.seats):
        if may_be_asked(g, s, seat):
            return index
    return -1


def _opens_insurance(g: Game, s: State, e: Go) -> bool:
    return _ace_up_offer(g, s) and nothing_with_deal(g, s) and _next_asked(g, s) >= 0


def _ask(g: Game, s: State, e: Go) -> State:
    return replace(s, asked=_next_asked(g, s))


def _calls_check(g: Game, s: State, e: Go) -> bool:
    if s.up not in g.peeks or not s.hole or not nothing_with_deal(g, s):
        return False
    return not _ace_up_offer(g, s) or _next_asked(g, s) < 0


def _no_check(g: Game, s: State, e: Go) -> bool:
    if not nothing_with_deal(g, s) or (s.up in g.peeks and s.hole):
        return False
    return not _ace_up_offer(g, s) or _next_asked(g, s) < 0


def seat_asked(s: State) -> Seat:
    return s.seats[s.asked]


def max_insurance(g: Game, seat: Seat) -> Amount:
    """Returns the maximum insurance: half of the main wager, in whole units."""
    return g.money.max_within(seat.main, 2)


def blackjack_of(s: State, seat: int) -> int:
    """Returns the index of the seat's unpaid blackjack, or -1."""
    for turn, hand in enumerate(s.hands):
        if hand.seat == seat and hand.natural and not hand.out:
            return turn
    return -1


def may_take_even_money(g: Game, s: State, seat: int) -> bool:
    return g.options.even_money.offered and blackjack_of(s, seat) >= 0


def _not_asked(g: Game, s: State, e: Insure | EvenMoney | Decline) -> bool:
    return e.seat != seat_asked(s).number


def _may_insure(g: Game, s: State, e: Insure) -> bool:
    return (
        not _not_asked(g, s, e)
        and e.amount > 0
        and e.amount <= max_insurance(g, seat_asked(s))
        and e.amount % g.money.unit == 0
    )


def _insure(g: Game, s: State, e: Insure) -> State:
    return replace(s, asking=e.amount)


def _insured(g: Game, s: State, e: Confirmed) -> State:
    seat = replace(seat_asked(s), insurance=s.asking, answer="insured")
    return replace(s, seats=with_seat(s, seat), asking=0)


def _own_line(g: Game, s: State, e: Withdrawn) -> bool:
    return e.actor.role != "player" or e.actor.seat == seat_asked(s).number


def _may_even(g: Game, s: State, e: EvenMoney) -> bool:
    return not _not_asked(g, s, e) and may_take_even_money(g, s, e.seat)


def _insures(o: Options) -> bool:
    return o.insurance.offered


def _even_needed(o: Options) -> bool:
    return o.even_money.offered


def _even(g: Game, s: State, e: EvenMoney) -> State:
    return replace(s, seats=with_seat(s, replace(seat_asked(s), answer="even_money")))


def _declined(g: Game, s: State, e: Decline) -> State:
    return replace(s, seats=with_seat(s, replace(seat_asked(s), answer="declined")))


def _even_money_taken(g: Game, s: State, e: InsuranceClosed) -> bool:
    return bool(even_monies(g, s))


def _insurance_detail(g: Game, s: State, e: Insure) -> dict[str, str]:
    return {
        "seat": str(e.seat),
        "asked": str(seat_asked(s).number),
        "most": g.say_amount(max_insurance(g, seat_asked(s))),
        "unit": g.say_amount(g.money.unit),
    }


def _asked_detail(g: Game, s: State, e: EvenMoney | Decline) -> dict[str, str]:
    return {"seat": str(e.seat), "asked": str(seat_asked(s).number)}


_OFFERING = (Step.AFTER_DEAL, Step.OFFER)


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


def _after_check(g: Game, s: State, e: Go) -> State:
    return replace(s, due=lost_insurance(g, s) + waiting_blackjacks(g, s), after=Step.NEXT_HAND)


ROWS: tuple[Row, ...] = (
    Row(
        "no_check",
        _OFFERING,
        Go,
        Step.NEXT_HAND,
        "No check of the hole card is called for: the players play.",
        when=_no_check,
    ),
    Row(
        "open_insurance",
        _OFFERING,
        Go,
        Step.INSURANCE,
        "With an ace up insurance is opened, and even money where the game has it; each seat is "
        "asked in turn, also one whose blackjack is paid already.",
        when=_opens_insurance,
        do=_ask,
        needs=_insures,
        rule=(
            "classic.insurance1",
            "maxtime.1c",
            "maxtime.7c",
            "mega.deal3",
            "mega.10",
        ),
    ),
    Row(
        "call_check",
        _OFFERING,
        Go,
        Step.CHECK,
        "The dealer checks the hole card under this up card before any hand is played.",
        when=_calls_check,
        rule=(
            "sf21x.5",
            "maxtime.4d",
            "mega.8",
        ),
    ),
    Row(
        "insure",
        (Step.INSURANCE,),
        Insure,
        Step.INSURANCE_CONFIRM,
        "The seat wants insurance, at most half of its wager: the chips are to lie on the line.",
        when=_may_insure,
        do=_insure,
        rule=(
            "classic.insurance1",
            "classic.insurance2",
            "maxtime.1d",
            "maxtime.1c",
            "classic.rule7",
        ),
        needs=_insures,
    ),
    Row(
        "insurance_confirmed",
        (Step.INSURANCE_CONFIRM,),
        Confirmed,
        Step.NEXT_ASKED,
        "The dealer sees the chips: the insurance stands and nobody may take it back.",
        do=_insured,
        rule=("classic.locked2", "maxtime.1d"),
        needs=_insures,
    ),
    Row(
        "insurance_withdrawn",
        (Step.INSURANCE_CONFIRM,),
        Withdrawn,
        Step.INSURANCE,
        "Before the dealer confirms it the player may take the insurance back.",
        when=_own_line,
        why="that is another seat's to take back",
        do=lambda g, s, e: replace(s, asking=0),
        rule=("classic.locked2",),
        needs=_insures,
    ),
    Row(
        "even_money",
        (Step.INSURANCE,),
        EvenMoney,
        Step.NEXT_ASKED,
        "The seat takes even money for its blackjack, for good.",
        when=_may_even,
        do=_even,
        needs=_even_needed,
        why="even money is for the blackjack of the seat that is asked",
        rule=("mega.10", "mega.deal3"),
    ),
    Row(
        "decline",
        (Step.INSURANCE,),
        Decline,
        Step.NEXT_ASKED,
        "The seat takes neither insurance nor even money.",
        when=lambda g, s, e: not _not_asked(g, s, e),
        do=_declined,
        rule=(
            "mega.deal4",
            "mega.deal3",
            "classic.rule7",
        ),
        needs=_insures,
    ),
    Row(
        "ask_next",
        (Step.NEXT_ASKED,),
        Go,
        Step.INSURANCE,
        "The next seat is asked.",
        when=lambda g, s, e: _next_asked(g, s) >= 0,
        do=_ask,
        needs=_insures,
    ),
    Row(
        "all_asked",
        (Step.NEXT_ASKED,),
        Go,
        Step.INSURANCE_CLOSE,
        "Every seat was asked: insurance is to be closed aloud.",
        when=lambda g, s, e: _next_asked(g, s) < 0,
        needs=_insures,
    ),
    Row(
        "close_insurance_and_pay",
        (Step.INSURANCE_CLOSE,),
        InsuranceClosed,
        Step.PAYING,
        "Insurance is closed; even money is paid.",
        when=_even_money_taken,
        do=lambda g, s, e: replace(s, due=even_monies(g, s), after=Step.CHECK),
        needs=_even_needed,
        rule=("mega.10",),
    ),
    Row(
        "close_insurance",
        (Step.INSURANCE_CLOSE,),
        InsuranceClosed,
        Step.CHECK,
        "Insurance is closed; the hole card is checked.",
        when=lambda g, s, e: not _even_money_taken(g, s, e),
        needs=_insures,
    ),
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
        when=lambda g, s, e: next_to_decline(g, s) < 0 and _anything_after_check(g, s),
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
        when=lambda g, s, e: next_to_decline(g, s) < 0 and not _anything_after_check(g, s),
        rule=(
            "maxtime.4d",
            "sf21x.5",
        ),
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "insurance_not_asked",
        (Step.INSURANCE,),
        Insure,
        "seat {seat} is not asked now: seat {asked} is",
        _not_asked,
        _insurance_detail,
    ),
    Refusal(
        "insurance_amount",
        (Step.INSURANCE,),
        Insure,
        "seat {seat}: insurance is {unit} to {most} in whole chips, at most half of the wager",
        None,
        _insurance_detail,
        rule=("classic.insurance2",),
    ),
    Refusal(
        "even_money_not_asked",
        (Step.INSURANCE,),
        EvenMoney,
        "seat {seat} is not asked now: seat {asked} is",
        _not_asked,
        _asked_detail,
    ),
    Refusal(
        "no_even_money",
        (Step.INSURANCE,),
        EvenMoney,
        "seat {seat}: even money is for a blackjack that waits, in a game that offers it",
        None,
        _asked_detail,
        rule=("maxtime.1e",),
    ),
    Refusal(
        "decline_not_asked",
        (Step.INSURANCE,),
        Decline,
        "seat {seat} is not asked now: seat {asked} is",
        None,
        _asked_detail,
    ),
    *(
        Refusal("insurance_not_open", elsewhere(Step.INSURANCE), event, "insurance is not open now")
        for event in (Insure, EvenMoney, Decline)
    ),
    Refusal(
        "insurance_not_to_close",
        elsewhere(Step.INSURANCE_CLOSE),
        InsuranceClosed,
        "insurance is not to be closed now: ask every seat first, then close it once",
    ),
    Refusal(
        "no_check_now",
        elsewhere(Step.CHECK),
        HoleChecked,
        "the hole card is not to be checked now",
    ),
)
