"""The felt drawn, as SVG: the dealer above, seat 1 at the dealer's left hand."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

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
from controller.screens.review.view.felt import Felt, FeltHand, FeltSeat

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
            yield from _seat(seat, x, y)


def _seat(seat: FeltSeat, x: int, y: int) -> Iterator[str]:
    several = len(seat.hands) > 1
    for row, hand in enumerate(seat.hands):
        yield from _hand(hand, x, y + row * (_HAND_HEIGHT if not several else 62), several)
    below = y + (len(seat.hands) * 62 + 34 if several else len(seat.hands) * (_HAND_HEIGHT + 22))
    for row, (name, amount) in enumerate(seat.bets):
        yield _text(x, below + 16 + 18 * row, f"{name} {amount}", "bet")


def _hand(hand: FeltHand, x: int, y: int, small: bool) -> Iterator[str]:
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
