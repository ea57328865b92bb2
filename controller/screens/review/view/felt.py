"""The felt as it looked: what lies face up, where, and who is to do what.

It is made of the procedure's state, which knows no card that lies face down. Of the shoe nothing is
taken: neither what was seen of it nor what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from msgspec import Struct

from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts import BETS, AmountFormat, card_words, irregularity
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand, is_blackjack
from controller.screens.common.felt_svg import (
    CARD_HEIGHT,
    CARD_WIDTH,
    CLOTH,
    DOWN,
    HEIGHT,
    WIDTH,
    card,
    where,
)

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


def felt_of(s: State, money: AmountFormat) -> Felt:
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


def _seat(s: State, seat: Seat, money: AmountFormat) -> FeltSeat:
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


def _hand(s: State, turn: int, hand: Hand, money: AmountFormat) -> FeltHand:
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


_STEP: Final = 21
"""Between two cards of a hand that overlap."""
_HAND_HEIGHT: Final = 88
_DEALER_X, _DEALER_Y = WIDTH // 2, 40


def picture(felt: Felt, seats: int, number: int = 0) -> str:
    """The whole drawing. `seats`: of the table. `number`: tells it from others on a page."""
    body = "".join((*_table(), *_dealer(felt), *_seats(felt, max(seats, _most(felt)))))
    title = f"felt-{number}"
    return (
        f'<svg class="felt" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{title}" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{title}">{escape(str(felt))}</title>'
        f"{body}</svg>"
    )


def _most(felt: Felt) -> int:
    return max((seat.number for seat in felt.seats), default=0)


def _table() -> Iterator[str]:
    yield f'<path class="cloth" d="{CLOTH}"/>'


def _dealer(felt: Felt) -> Iterator[str]:
    yield _text(_DEALER_X, 30, "Dealer", "place")
    yield from _cards(felt.dealer, _DEALER_X, _DEALER_Y)
    if felt.dealer_total:
        yield _text(_DEALER_X, _DEALER_Y + CARD_HEIGHT + 18, felt.dealer_total, "total")
    if felt.spare:
        yield _text(WIDTH - 150, 60, "Beside the shoe", "place")
        yield from _cards((felt.spare,), WIDTH - 150, 70)
    for row, words in enumerate(felt.held):
        yield _text(_DEALER_X, 152 + 22 * row, f"Held: {words}", "held")
    if felt.due:
        yield _text(_DEALER_X, 152 + 22 * len(felt.held), f"To settle: {felt.due}", "due")


def _seats(felt: Felt, seats: int) -> Iterator[str]:
    there = {seat.number: seat for seat in felt.seats}
    for number in range(1, seats + 1):
        x, y = where(number, seats)
        seat = there.get(number)
        yield f'<circle class="spot" cx="{x}" cy="{y + 34}" r="40"/>' if seat is None else ""
        yield _text(x, y - 10, f"Seat {number}", "place asked" if seat and seat.asked else "place")
        if seat is not None:
            yield from _seat_svg(seat, x, y)


def _seat_svg(seat: FeltSeat, x: int, y: int) -> Iterator[str]:
    several = len(seat.hands) > 1
    for row, hand in enumerate(seat.hands):
        yield from _hand_svg(hand, x, y + row * (_HAND_HEIGHT if not several else 62), several)
    below = y + (len(seat.hands) * 62 + 34 if several else len(seat.hands) * (_HAND_HEIGHT + 22))
    for row, (name, amount) in enumerate(seat.bets):
        yield _text(x, below + 16 + 18 * row, f"{name} {amount}", "bet")


def _hand_svg(hand: FeltHand, x: int, y: int, small: bool) -> Iterator[str]:
    width = CARD_WIDTH + _STEP * max(len(hand.cards) - 1, 0)
    if hand.turn:
        yield (
            f'<rect class="turn" x="{x - width // 2 - 6}" y="{y - 5}" width="{width + 12}" '
            f'height="{CARD_HEIGHT + 10}" rx="8"/>'
        )
    yield from _cards(hand.cards, x, y)
    said = " ".join((*([hand.total] if hand.total else []), *hand.tags))
    if small:
        yield _text(x + width // 2 + 8, y + 20, said, "total side")
        yield _text(x + width // 2 + 8, y + 38, hand.wager, "bet side")
        return
    yield _text(x, y + CARD_HEIGHT + 18, said, "total")
    yield _text(x, y + CARD_HEIGHT + 37, hand.wager, "bet")


def _cards(names: tuple[str, ...], x: int, y: int) -> Iterator[str]:
    left = x - (CARD_WIDTH + _STEP * max(len(names) - 1, 0)) // 2
    if DOWN in names or len(names) <= 2:  # two cards lie beside each other
        left = x - (CARD_WIDTH * len(names) + 4 * max(len(names) - 1, 0)) // 2
        step = CARD_WIDTH + 4
    else:
        step = _STEP
    for place, name in enumerate(names):
        yield card(name, left + place * step, y)


def _text(x: int, y: int, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>' if words else ""
