"""The felt as it looked: what lies face up, where, and who is to do what.

It is made of the procedure's state, which knows no card that lies face down. Of the shoe nothing is
taken: neither what was seen of it nor what is left.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts.terms import BETS, Speaks, card_words, irregularity
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand, is_blackjack
from controller.screens.common.felt_svg import DOWN

_BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster", "insurance")
_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD)
_ASKS: Final = (Step.NATURALS, Step.INSURANCE, Step.INSURANCE_CONFIRM)


class FeltHand(Struct, frozen=True):
    cards: tuple[str, ...]
    total: str
    """As people say it."""
    wager: str
    turn: bool
    tags: tuple[str, ...]


class FeltSeat(Struct, frozen=True):
    number: int
    bets: tuple[tuple[str, str], ...]
    """What lies there, bet by bet, but for the main wager of a hand."""
    hands: tuple[FeltHand, ...]
    asked: bool


class Felt(Struct, frozen=True):
    step: str
    round: int
    dealer: tuple[str, ...]
    """The last may lie face down."""
    dealer_total: str
    seats: tuple[FeltSeat, ...]
    spare: str
    """The card beside the shoe; nothing where there is none."""
    held: tuple[str, ...]
    due: str
    """The payment that is made next."""

    def __str__(self) -> str:
        """For who does not see it."""
        return ". ".join(_words(self))


def felt_of(s: State, money: Speaks) -> Felt:
    dealer = _names(s.dealer)
    if s.hole:
        dealer = (*dealer, DOWN)
    spare = s.spare
    due = s.due[0] if s.due and s.step is Step.PAYING else None
    return Felt(
        s.step.value,
        s.round,
        dealer,
        _total(s.dealer_total, s.dealer_soft, s.dealer),
        tuple(_seat(s, seat, money) for seat in s.seats),
        "" if spare is None else NAMES[spare.card] if spare.card >= 0 else DOWN,
        tuple(irregularity(hold.what.value) for hold in s.holds),
        "" if due is None else f"seat {due.seat}: {money.amount(due.moves)}",
    )


def _seat(s: State, seat: Seat, money: Speaks) -> FeltSeat:
    hands = [(turn, hand) for turn, hand in enumerate(s.hands) if hand.seat == seat.number]
    bets = [
        (BETS[bet], money.amount(getattr(seat, bet)))
        for bet in _BETS
        if getattr(seat, bet) and not (bet == "main" and hands)
    ]
    asks = s.step in _ASKS and s.asked < len(s.seats) and s.seats[s.asked].number == seat.number
    return FeltSeat(
        seat.number,
        tuple(bets),
        tuple(_hand(s, turn, hand, money) for turn, hand in hands if _lies(hand, seat)),
        asks,
    )


def _lies(hand: Hand, seat: Seat) -> bool:
    """It is on the felt: in play, or tucked under the seat's Buster wager."""
    return not hand.out or (hand.busted and seat.buster > 0)


def _hand(s: State, turn: int, hand: Hand, money: Speaks) -> FeltHand:
    tags = {
        "blackjack": len(hand.cards) == 2 and not hand.split and is_blackjack(*hand.cards),
        "bust": hand.busted,
        "doubled": hand.doubles > 0,
        "tucked": hand.out,
    }
    return FeltHand(
        _names(hand.cards),
        _total(hand.total, hand.soft, hand.cards),
        money.amount(hand.wager),
        s.step in _TURNS and turn == s.turn,
        tuple(tag for tag, holds in tags.items() if holds),
    )


def _names(cards: tuple[Card, ...]) -> tuple[str, ...]:
    return tuple(NAMES[card] for card in cards)


def _total(total: int, soft: bool, cards: tuple[Card, ...]) -> str:
    if not cards:
        return ""
    return f"soft {total}" if soft and total < 21 else str(total)


# --- in words ---------------------------------------------------------------------------------

_CARDS: Final = {name: card_words(card) for card, name in enumerate(NAMES)} | {DOWN: "face down"}


def _words(felt: Felt) -> list[str]:
    said = [f"Dealer: {_listed(felt.dealer)}"] if felt.dealer else []
    for seat in felt.seats:
        bets = [f"{name} {amount}" for name, amount in seat.bets]
        hands = [f"{_listed(one.cards)}, {', '.join(_about(one))}" for one in seat.hands]
        said.append(f"Seat {seat.number}: {'; '.join([*hands, *bets]) or 'nothing'}")
    if felt.spare:
        said.append(f"Beside the shoe: {_CARDS[felt.spare]}")
    if felt.held:
        said.append(f"Held: {', '.join(felt.held)}")
    return said or ["Nothing lies on the felt"]


def _listed(cards: tuple[str, ...]) -> str:
    return ", ".join(_CARDS[name] for name in cards) or "no cards"


def _about(hand: FeltHand) -> list[str]:
    turn = ["in turn"] if hand.turn else []
    return [*([hand.total] if hand.total else []), f"wager {hand.wager}", *hand.tags, *turn]
