"""The felt after a record, as the review shows it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts import BETS, AmountFormat, card_words, irregularity
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand
from controller.screens.common.felt import (
    DOWN,
    Felt,
    FeltHand,
    FeltSeat,
    bets_at,
    dealers_cards,
    hands_at,
    is_asked,
    names_of,
    spare_card,
    tags_of,
)

_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD)
_ASKS: Final = (Step.NATURALS, Step.INSURANCE, Step.INSURANCE_CONFIRM)
_BESIDE: Final = "Beside the shoe"
_CARDS: Final = {name: card_words(card) for card, name in enumerate(NAMES)} | {DOWN: "face down"}


def felt_of(s: State, money: AmountFormat, seats: int) -> Felt:
    """`seats`: of the table."""
    by_number = {seat.number: seat for seat in s.seats}
    numbers = range(1, max(seats, *by_number, 0) + 1)
    notes = [(f"Held: {irregularity(hold.what.value)}", "held") for hold in s.holds]
    if s.due and s.step is Step.PAYING:
        due = s.due[0]
        notes.append((f"To settle: seat {due.seat}: {money.amount(due.moves)}", "due"))
    felt = Felt(
        "Dealer",
        dealers_cards(s),
        _total(s.dealer_total, s.dealer_soft, s.dealer),
        tuple(_seat(s, number, by_number.get(number), money) for number in numbers),
        spare_card(s),
        _BESIDE,
        notes=tuple(notes),
    )
    said = [f"Dealer: {_listed(felt.dealer)}"] if felt.dealer else []
    said += [seat.words for seat in felt.seats if seat.plays]
    said += [f"{_BESIDE}: {_CARDS[felt.spare]}"] if felt.spare else []
    held = ", ".join(irregularity(hold.what.value) for hold in s.holds)
    said += [f"Held: {held}"] if held else []
    return replace(felt, words=tuple(said) or ("Nothing lies on the felt",))


def _seat(s: State, number: int, seat: Seat | None, money: AmountFormat) -> FeltSeat:
    name = f"Seat {number}"
    if seat is None:
        return FeltSeat(number, name)
    hands = tuple(_hand(s, turn, hand, money) for turn, hand in hands_at(s, seat))
    bets = tuple((BETS[bet], money.amount(amount)) for bet, amount in bets_at(s, seat))
    said = "; ".join([*(hand.words for hand in hands), *(f"{bet} {had}" for bet, had in bets)])
    asked = s.step in _ASKS and is_asked(s, seat)
    return FeltSeat(number, name, True, bets, hands, asked, f"{name}: {said or 'nothing'}")


def _hand(s: State, turn: int, hand: Hand, money: AmountFormat) -> FeltHand:
    total = _total(hand.total, hand.soft, hand.cards)
    cards, wager, tags = names_of(hand.cards), money.amount(hand.wager), tags_of(hand)
    mine = s.step in _TURNS and turn == s.turn
    said = [_listed(cards), total, f"wager {wager}", *tags, "in turn" if mine else ""]
    return FeltHand(cards, total, wager, tags, mine, words=", ".join(filter(None, said)))


def _listed(cards: tuple[str, ...]) -> str:
    return ", ".join(_CARDS[name] for name in cards) or "no cards"


def _total(total: int, soft: bool, cards: tuple[Card, ...]) -> str:
    if not cards:
        return ""
    return f"soft {total}" if soft and total < 21 else str(total)
