"""Payments, collections and returns, in the order in which the dealer makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from controller.procedure.model.effects import Fact, Settled, Tucked
from controller.procedure.model.felt import dealer_has_blackjack, put, seat_of, with_seat
from controller.procedure.model.game import Game
from controller.procedure.model.state import Due, Outcome, Seat, State
from controller.rules.hands import Hand, Verdict, ace_and_ten
from controller.rules.money import EVEN, Amount, Odds
from controller.rules.payouts import (
    against_dealer,
    blackjack_odds,
    buster_odds,
    could_be_blackjack,
    in_diamonds,
    surrendered,
)

BUSTERS: Final = ("buster", "toke_buster")
"""Bets on the dealer's bust."""
_SIDE: dict[Outcome, Outcome] = {
    "blackjack": "win",
    "even_money": "win",
    "instant21": "win",
    "instant6": "win",
    "surrender": "lose",
}
"""A toke bet's outcome, as outcomes of side bets are named."""

_INSTANT: dict[int, Outcome] = {
    Verdict.INSTANT_21: "instant21",
    Verdict.INSTANT_COUNT: "instant6",
}


def handed_back(g: Game, stake: Amount, outcome: Outcome, odds: Odds | None) -> Amount:
    if odds is not None:
        return stake + g.money.winnings(stake, odds)
    if outcome == "lose":
        return 0
    return g.money.half(stake) if outcome == "surrender" else stake


def for_hand(
    g: Game, s: State, turn: int, outcome: Outcome, odds: Odds | None, why: str
) -> tuple[Due, ...]:
    """Returns the hand's due, and that of the toke bet that rides on a seat's first hand."""
    hand = s.hands[turn]
    stake = hand.wager
    if outcome == "surrender":
        returned = surrendered(g.options, hand)
    else:
        returned = handed_back(g, stake, outcome, odds)
    due = Due(hand.seat, turn, hand.number, "main", outcome, odds, stake, returned, why, hand.cards)
    if hand.number:
        return (due,)
    seat = seat_of(s, hand.seat)
    toke = 0 if seat is None else seat.amount("toke_main")
    if not toke:
        return (due,)
    back = handed_back(g, toke, outcome, odds)
    side = _SIDE.get(outcome, outcome)
    return (due, Due(hand.seat, -1, -1, "toke_main", side, odds, toke, back, why))


def for_side(g: Game, seat: Seat, bet: str, odds: Odds | None, why: str) -> Due:
    stake = seat.amount(bet)
    outcome: Outcome = "lose" if odds is None else "win"
    back = handed_back(g, stake, outcome, odds)
    return Due(seat.number, -1, -1, bet, outcome, odds, stake, back, why)


def in_order(g: Game, seats: tuple[Seat, ...]) -> Iterable[Seat]:
    """Returns the seats in the house's settling order."""
    if len(seats) == 1 or g.options.settle.order == "first_seat":
        return seats
    return reversed(seats)


def turns_of(s: State, seat: Seat) -> Iterator[int]:
    """Yields the seat's hands that are still on the felt."""
    for turn, hand in enumerate(s.hands):
        if hand.seat == seat.number and not hand.out:
            yield turn


def each_hand(g: Game, s: State) -> Iterator[tuple[Seat, int]]:
    """Yields the hands that are still on the felt, with their seats, in the settling order."""
    return ((seat, turn) for seat in in_order(g, s.seats) for turn in turns_of(s, seat))


def seen_by_floor(g: Game, s: State, dues: tuple[Due, ...]) -> tuple[Due, ...]:
    """Marks the payments that wait for the floor: large ones, and those beyond the house's cap."""
    from_amount = g.options.payout.floor_from
    cap = g.options.limits.table_payout
    if from_amount is None and cap is None:
        return dues
    won = s.won
    marked = []
    for due in dues:
        winnings = max(0, due.returned - due.stake)
        won += winnings
        large = from_amount is not None and winnings >= from_amount
        beyond = cap is not None and won > cap
        waits = winnings > 0 and (large or beyond)
        marked.append(replace(due, floor=True) if waits else due)
    return tuple(marked)


# After the deal


def paid_with_the_deal(g: Game, s: State, hand: Hand) -> bool:
    """Whether a blackjack is paid with the deal: no tie can take it, or the house pays first."""
    if not hand.natural or hand.out or g.waits_for_settlement:
        return False
    if g.options.blackjack.tie == "player_wins" or not could_be_blackjack(s.up):
        return True
    return s.up == 10 and g.options.blackjack.ten_up == "pay_first"


def with_the_deal(g: Game, s: State) -> tuple[Due, ...]:
    """Returns blackjacks payable before the check, and diamond bets."""
    dues: list[Due] = []
    for seat in in_order(g, s.seats):
        for turn in turns_of(s, seat):
            hand = s.hands[turn]
            if paid_with_the_deal(g, s, hand):
                dues += for_blackjack(g, s, turn)
            if seat.amount("diamond"):
                won = ace_and_ten(hand) and in_diamonds(hand.cards)
                odds = Odds(g.options.bonus.diamond.pays or 0, 1) if won else None
                why = "diamond_blackjack" if won else "no_diamond_blackjack"
                dues.append(for_side(g, seat, "diamond", odds, why))
    return seen_by_floor(g, s, tuple(dues))


def for_blackjack(g: Game, s: State, turn: int) -> tuple[Due, ...]:
    hand = s.hands[turn]
    odds = blackjack_odds(g.options, hand.cards)
    return for_hand(g, s, turn, "blackjack", odds, _why_blackjack(g, hand))


def _why_blackjack(g: Game, hand: Hand) -> str:
    suited = g.options.blackjack.pays_diamonds is not None and in_diamonds(hand.cards)
    return "blackjack_in_diamonds" if suited else "blackjack"


def even_monies(g: Game, s: State) -> tuple[Due, ...]:
    dues = (
        due
        for seat, turn in each_hand(g, s)
        if seat.answer == "even_money"
        for due in for_hand(g, s, turn, "even_money", EVEN, "even_money")
    )
    return seen_by_floor(g, s, tuple(dues))


def lost_insurance(g: Game, s: State) -> tuple[Due, ...]:
    """After a check that found no blackjack, insurance is collected before anything else."""
    return _insurances(g, s, None, "no_dealer_blackjack")


def _insurances(g: Game, s: State, odds: Odds | None, why: str) -> tuple[Due, ...]:
    insured = (seat for seat in in_order(g, s.seats) if seat.insurance)
    return tuple(for_side(g, seat, "insurance", odds, why) for seat in insured)


def waiting_blackjacks(g: Game, s: State) -> tuple[Due, ...]:
    if g.waits_for_settlement:
        return ()
    dues = (
        due
        for _, turn in each_hand(g, s)
        if s.hands[turn].natural
        for due in for_blackjack(g, s, turn)
    )
    return seen_by_floor(g, s, tuple(dues))


# In play


def for_verdict(g: Game, s: State) -> tuple[Due, ...]:
    """Returns the dues of the last card that are settled immediately."""
    if s.verdict == Verdict.BUST:
        return for_hand(g, s, s.turn, "lose", None, "bust")
    instant = g.options.instant
    odds = instant.pays_21 if s.verdict == Verdict.INSTANT_21 else instant.pays_count
    outcome = _INSTANT[s.verdict]
    return seen_by_floor(g, s, for_hand(g, s, s.turn, outcome, odds, outcome))


# At the end of the round


def _against_unchecked_blackjack(g: Game, s: State, seat: Seat, turn: int) -> tuple[Due, ...]:
    """A dealer's blackjack that no check found takes the seat's original bet only."""
    hand = s.hands[turn]
    lost_before = any(h.seat == seat.number and h.out and h.busted for h in s.hands)
    first = next(turns_of(s, seat)) == turn
    if lost_before or not first:
        return for_hand(g, s, turn, "push", None, "original_bets_only")
    dues = for_hand(g, s, turn, "lose", None, "dealer_blackjack")
    return (replace(dues[0], returned=hand.wager - hand.bet), *dues[1:])


def settlement(g: Game, s: State) -> tuple[Due, ...]:
    """Returns the dues of all wagers on the felt, against the dealer's completed hand."""
    total, count = s.dealer_total, len(s.dealer)
    blackjack = dealer_has_blackjack(s)
    # If the dealer left out the check by mistake, a player loses at most the original bet.
    left_out = s.up in g.peeks
    unchecked = blackjack and s.checked is None
    original_only = unchecked and (left_out or g.options.dealer.no_peek_takes == "original_bets")
    dues: list[Due] = []
    if blackjack and g.insures:
        dues += _insurances(g, s, g.options.insurance.pays, "dealer_blackjack")
    for seat in in_order(g, s.seats):
        for turn in turns_of(s, seat):
            hand = s.hands[turn]
            if original_only and not hand.natural:
                dues += _against_unchecked_blackjack(g, s, seat, turn)
                continue
            outcome, odds = _outcome(g, hand, total, count, blackjack=blackjack)
            why = _why(g, s, hand, outcome, odds, blackjack=blackjack)
            dues += for_hand(g, s, turn, outcome, odds, why)
        dues += _busters(g, s, seat)
    return seen_by_floor(g, s, tuple(dues))


def _outcome(
    g: Game, hand: Hand, total: int, count: int, *, blackjack: bool
) -> tuple[Outcome, Odds | None]:
    if hand.natural and not blackjack and not g.waits_for_settlement:
        # Paid late because no check was possible; no later card of the dealer takes it back.
        return "blackjack", blackjack_odds(g.options, hand.cards)
    return against_dealer(g.options, hand, total, count, blackjack=blackjack)


def _busters(g: Game, s: State, seat: Seat) -> list[Due]:
    bets = [bet for bet in BUSTERS if seat.amount(bet)]
    if not bets:
        return []
    odds = buster_odds(g.options, s.dealer_total, len(s.dealer))
    why = "dealer_busts" if s.dealer_total > 21 else "dealer_stands"
    return [for_side(g, seat, bet, odds, why) for bet in bets]


def _why(
    g: Game, s: State, hand: Hand, outcome: Outcome, odds: Odds | None, *, blackjack: bool
) -> str:
    if outcome == "blackjack":
        return _why_blackjack(g, hand)
    if blackjack:
        return "dealer_blackjack"
    if outcome == "win" and odds != EVEN:
        return "wins_21"
    if s.dealer_total <= 21:
        return "against_total"
    if outcome == "win":
        return "dealer_busts"
    return "dealer_22" if s.dealer_total == 22 and g.options.dealer.push_22 else "dealer_bust_push"


def refunds(g: Game, s: State, why: str) -> tuple[Due, ...]:
    """Returns all unsettled wagers, to be given back."""
    return tuple(due for seat in in_order(g, s.seats) for due in refunds_of(g, s, seat, why))


def refunds_of(g: Game, s: State, seat: Seat, why: str) -> tuple[Due, ...]:
    """Returns the wagers of one seat, to be given back."""
    turns = tuple(turns_of(s, seat))
    dues = [due for turn in turns for due in for_hand(g, s, turn, "void", None, why)]
    riding = bool(turns) and s.hands[turns[0]].number == 0
    bets = ("insurance", "diamond", "buster", "toke_main", "toke_buster")
    beside = (
        given_back(seat, bet, why)
        for bet in (bets if s.hands else ("main", *bets))
        if seat.amount(bet) and not (bet == "toke_main" and riding)
    )
    return (*dues, *beside)


def given_back(seat: Seat, bet: str, why: str) -> Due:
    stake = seat.amount(bet)
    return Due(seat.number, -1, -1, bet, "void", None, stake, stake, why)


# Settling


def settle(s: State, due: Due) -> State:
    """Returns the state after `due` is settled: the hand or the bet is off the felt."""
    won = s.won + max(0, due.returned - due.stake)
    if due.turn < 0:
        seat = seat_of(s, due.seat)
        if seat is None:
            return replace(s, won=won)
        return replace(s, seats=with_seat(s, seat.with_amount(due.bet, 0)), won=won)
    hands = put(s, due.turn, replace(s.hands[due.turn], done=True, out=True))
    return replace(s, hands=hands, won=won)


def facts(s: State, due: Due) -> tuple[Fact, ...]:
    """Returns the facts to record when `due` is settled."""
    settled = Settled(
        s.round,
        due.seat,
        due.hand,
        due.bet,
        due.outcome,
        due.odds,
        due.stake,
        due.returned,
        due.why,
        len(s.dealer) < 2,  # the hole card is not yet turned over
        due.cards,
    )
    if not tucks(s, due):
        return (settled,)
    return (settled, Tucked(due.seat, due.hand, due.cards))


def tucks(s: State, due: Due) -> bool:
    """Whether a busted hand's cards stay face up under the seat's live Buster wager."""
    if due.why != "bust" or due.turn < 0:
        return False
    seat = seat_of(s, due.seat)
    return seat is not None and seat.amount("buster") > 0
