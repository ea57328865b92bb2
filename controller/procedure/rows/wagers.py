"""Wagers: placed and removed until the first card leaves the shoe."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.effects import Effect, WagersLocked
from controller.procedure.model.events import CardDrawn, WagerPlaced, WagerRemoved
from controller.procedure.model.felt import fresh, lay, seat_index, tally_drawn
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Seat, State, Step, elsewhere
from controller.rules.hands import Hand
from controller.rules.money import Amount
from controller.rules.option_constraints import MAX_MONEY
from controller.rules.options import Limit


def first_round(s: State) -> bool:
    return s.shoe.rounds == 0


def closed_to_this_round(g: Game, s: State, bet: str) -> bool:
    """Whether the bet is open on the first round of a shoe only, and this is a later round."""
    only = bet == "diamond" and g.options.bonus.diamond.first_round_only is True
    return only and not first_round(s)


# Refusals first: a wager is accepted if no refusal applies.


def _no_such_seat(g: Game, s: State, e: WagerPlaced) -> bool:
    return not 1 <= e.seat <= g.seats


def _not_offered(g: Game, s: State, e: WagerPlaced) -> bool:
    return e.bet not in g.offered


def _without_main(g: Game, s: State, e: WagerPlaced) -> bool:
    return e.bet != "main" and seat_index(s, e.seat) < 0


def _only_first_round(g: Game, s: State, e: WagerPlaced) -> bool:
    return closed_to_this_round(g, s, e.bet)


def _not_an_amount(g: Game, s: State, e: WagerPlaced) -> bool:
    return not 0 < e.amount <= MAX_MONEY or e.amount % g.money.unit != 0


def _below(g: Game, s: State, e: WagerPlaced) -> bool:
    least = g.limits[e.bet].min
    return least is not None and e.amount < least


def _above(g: Game, s: State, e: WagerPlaced) -> bool:
    most = g.limits[e.bet].max
    return most is not None and e.amount > most


def _off_step(g: Game, s: State, e: WagerPlaced) -> bool:
    step = g.limits[e.bet].step
    return step is not None and e.amount % step != 0


def _first_card_is_out(g: Game, s: State, e: WagerPlaced | WagerRemoved) -> bool:
    return s.spare is not None and s.spare.card >= 0


_FLAWS = (
    _first_card_is_out,
    _no_such_seat,
    _not_offered,
    _without_main,
    _only_first_round,
    _not_an_amount,
    _below,
    _above,
    _off_step,
)


def _good(g: Game, s: State, e: WagerPlaced) -> bool:
    for flaw in _FLAWS:
        if flaw(g, s, e):
            return False
    return True


def _placed(g: Game, s: State, e: WagerPlaced) -> State:
    index = seat_index(s, e.seat)
    if index >= 0:
        seat = s.seats[index].with_amount(e.bet, e.amount)
        return replace(s, seats=(*s.seats[:index], seat, *s.seats[index + 1 :]))
    new = Seat(e.seat, e.amount)
    if not s.seats:
        return replace(s, seats=(new,))
    return replace(s, seats=tuple(sorted((*s.seats, new), key=lambda seat: seat.number)))


def _lies_there(g: Game, s: State, e: WagerRemoved) -> bool:
    index = seat_index(s, e.seat)
    return index >= 0 and bool(s.seats[index].amount(e.bet)) and not _first_card_is_out(g, s, e)


def _removed(g: Game, s: State, e: WagerRemoved) -> State:
    index = seat_index(s, e.seat)
    if e.bet == "main":
        return replace(s, seats=(*s.seats[:index], *s.seats[index + 1 :]))
    seat = s.seats[index].with_amount(e.bet, 0)
    return replace(s, seats=(*s.seats[:index], seat, *s.seats[index + 1 :]))


# The first card


def _opens_round(g: Game, s: State, e: CardDrawn) -> bool:
    return bool(s.seats) and fresh(g, s, e)


def _locked(g: Game, s: State, e: CardDrawn) -> State:
    seats = s.seats
    if len(seats) == 1:
        hands: tuple[Hand, ...] = (Hand(seats[0].number, seats[0].main, seats[0].main),)
    else:
        hands = tuple([Hand(seat.number, seat.main, seat.main) for seat in seats])
    places = g.deal_order(tuple([seat.number for seat in seats]))
    left = s.shoe.rounds_left
    shoe = replace(s.shoe, rounds=s.shoe.rounds + 1, rounds_left=left - 1 if left > 0 else left)
    begun = replace(
        s,
        round=s.round + 1,
        shoe=shoe,
        hands=hands,
        places=places,
    )
    return lay(begun, places[0], e.card, tally_drawn(s, e), None)


def _total(seat: Seat) -> Amount:
    return seat.main + sum(amount for _, amount in seat.bets)


def _lock_facts(g: Game, s: State, e: CardDrawn, after: State) -> tuple[Effect, ...]:
    total = sum([_total(seat) for seat in s.seats])
    return (WagersLocked(after.round, total, g.options.limits.table_payout),)


def _amount_detail(g: Game, s: State, e: WagerPlaced) -> dict[str, str]:
    limit = g.limits.get(e.bet, Limit())
    return {
        "seat": str(e.seat),
        "bet": e.bet,
        "amount": g.say_amount(e.amount),
        "min": g.say_amount(limit.min or 0),
        "max": g.say_amount(limit.max or 0),
        "step": g.say_amount(limit.step or 0),
        "chip": g.say_amount(g.money.unit),
        "seats": str(g.seats),
        "offered": ", ".join(bet for bet in BETS if bet in g.offered),
    }


_AT = (Step.WAGERING,)
_BEFORE = (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.BURNING)
_OPEN_LATER = elsewhere(Step.WAGERING)

ROWS = (
    Row(
        "place_wager",
        _AT,
        WagerPlaced,
        Step.WAGERING,
        "A wager within the limits lies on its spot; side bets and tokes beside a main wager.",
        when=_good,
        do=_placed,
        why="the wager cannot be taken",
        rule=(
            "classic.wagers1",
            "mega.wager1",
            "mega.wager2",
            "mega.toke1",
            "mega.buster1",
            "maxtime.7a",
            "sf21x.1",
        ),
    ),
    Row(
        "remove_wager",
        _AT,
        WagerRemoved,
        Step.WAGERING,
        "Before the first card a wager may be taken back; with a main wager go its side bets.",
        when=_lies_there,
        do=_removed,
        why="no such wager lies there",
        rule=("classic.locked1",),
    ),
    *(
        Row(
            f"remove_wager_at_{step.value}",
            (step,),
            WagerRemoved,
            step,
            "A wager that waits for a shuffle may be taken back.",
            when=_lies_there,
            do=_removed,
            why="no such wager lies there",
        )
        for step in _BEFORE
    ),
    Row(
        "first_card",
        _AT,
        CardDrawn,
        Step.DEALING,
        "The first card leaves the shoe: no wager may be placed, changed or taken back any more.",
        when=_opens_round,
        do=_locked,
        effects=_lock_facts,
        rule=(
            "classic.locked1",
            "mega.wager1",
            "classic.deal1",
            "classic.deal2",
            "maxtime.intro2",
            "sf21x.3",
        ),
    ),
)

REFUSALS = (
    Refusal(
        "first_card_is_out_already",
        _AT,
        WagerRemoved,
        "the first card has left the shoe: the wager stays",
        _first_card_is_out,
        rule=("classic.locked1",),
    ),
    Refusal(
        "first_card_is_out",
        _AT,
        WagerPlaced,
        "the first card has left the shoe: hand the chips back",
        _first_card_is_out,
        rule=("classic.locked1",),
    ),
    Refusal(
        "no_such_seat",
        _AT,
        WagerPlaced,
        "seat {seat}: the table has seats 1 to {seats}",
        _no_such_seat,
        _amount_detail,
    ),
    Refusal(
        "bet_not_offered",
        _AT,
        WagerPlaced,
        "seat {seat}: this game has no {bet} bet; it has {offered}",
        _not_offered,
        _amount_detail,
    ),
    Refusal(
        "without_main",
        _AT,
        WagerPlaced,
        "seat {seat}: a {bet} bet needs a main wager at its seat",
        _without_main,
        _amount_detail,
        rule=("maxtime.7a", "sf21x.1", "mega.wager1"),
    ),
    Refusal(
        "first_round_only",
        _AT,
        WagerPlaced,
        "seat {seat}: the {bet} bet is open on the first round after a shuffle only",
        _only_first_round,
        _amount_detail,
        rule=("maxtime.7a",),
    ),
    Refusal(
        "not_an_amount",
        _AT,
        WagerPlaced,
        "seat {seat}: {amount} is no wager: it is made of whole chips, the smallest of them {chip}",
        _not_an_amount,
        _amount_detail,
    ),
    Refusal(
        "below_minimum",
        _AT,
        WagerPlaced,
        "seat {seat}: {bet} bets start at {min}",
        _below,
        _amount_detail,
        rule=("sf21x.1",),
    ),
    Refusal(
        "above_maximum",
        _AT,
        WagerPlaced,
        "seat {seat}: {bet} bets go up to {max}",
        _above,
        _amount_detail,
        rule=("sf21x.1",),
    ),
    Refusal(
        "off_step",
        _AT,
        WagerPlaced,
        "seat {seat}: {bet} bets go in steps of {step}",
        _off_step,
        _amount_detail,
    ),
    Refusal(
        "late_wager",
        tuple(step for step in _OPEN_LATER if step is not Step.CLOSED),
        WagerPlaced,
        "wagers are closed: hand the chips back",
        rule=("classic.locked1",),
    ),
    Refusal("closed_no_wagers", (Step.CLOSED,), WagerPlaced, "the table is closed"),
    Refusal(
        "wagers_locked",
        tuple(step for step in _OPEN_LATER if step not in _BEFORE),
        WagerRemoved,
        "wagers are locked until the hand is over",
        rule=("classic.locked1",),
    ),
)
