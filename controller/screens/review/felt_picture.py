"""The felt drawn, as SVG: the dealer above, seat 1 at the dealer's left hand."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from controller.screens.review.felt import Felt, FeltHand, FeltSeat

WIDTH, HEIGHT = 1120, 600
_CARD_WIDTH, _CARD_HEIGHT = 46, 64
_STEP: Final = 21
"""Between two cards of a hand that overlap."""
_HAND_HEIGHT: Final = 88
_DEALER_X, _DEALER_Y = WIDTH // 2, 40
_SEAT_Y: Final = (232, 292, 328, 340, 328, 292, 232)
"""Where the seats of a table with seven of them begin, from one end to the other."""
_FELT: Final = (
    f"M 24 8 H {WIDTH - 24} V 300 C {WIDTH - 40} 500 {WIDTH - 260} {HEIGHT - 8} {WIDTH // 2} "
    f"{HEIGHT - 8} C 260 {HEIGHT - 8} 40 500 24 300 Z"
)
_GLYPHS: Final = {"C": "\u2663", "D": "\u2666", "H": "\u2665", "S": "\u2660"}
_PLAIN: Final = "\ufe0e"
"""After a suit: no picture of it, a letter."""
_RANKS: Final = {"T": "10"}
_DOWN: Final = "--"


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
    yield f'<path class="cloth" d="{_FELT}"/>'


def _dealer(felt: Felt) -> Iterator[str]:
    yield _text(_DEALER_X, 30, "Dealer", "place")
    yield from _cards(felt.dealer, _DEALER_X, _DEALER_Y)
    if felt.dealer_total:
        yield _text(_DEALER_X, _DEALER_Y + _CARD_HEIGHT + 18, felt.dealer_total, "total")
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
        x, y = _where(number, seats)
        seat = there.get(number)
        yield f'<circle class="spot" cx="{x}" cy="{y + 34}" r="40"/>' if seat is None else ""
        yield _text(x, y - 10, f"Seat {number}", "place asked" if seat and seat.asked else "place")
        if seat is not None:
            yield from _seat(seat, x, y)


def _where(number: int, seats: int) -> tuple[int, int]:
    """Seat 1 lies to the right of a picture with the dealer above."""
    side = 140
    share = 0.5 if seats == 1 else (seats - number) / (seats - 1)
    at = share * (len(_SEAT_Y) - 1)
    low = min(int(at), len(_SEAT_Y) - 2)
    y = _SEAT_Y[low] + (at - low) * (_SEAT_Y[low + 1] - _SEAT_Y[low])
    return round(side + share * (WIDTH - 2 * side)), round(y)


def _seat(seat: FeltSeat, x: int, y: int) -> Iterator[str]:
    several = len(seat.hands) > 1
    for row, hand in enumerate(seat.hands):
        yield from _hand(hand, x, y + row * (_HAND_HEIGHT if not several else 62), several)
    below = y + (len(seat.hands) * 62 + 34 if several else len(seat.hands) * (_HAND_HEIGHT + 22))
    for row, (name, amount) in enumerate(seat.bets):
        yield _text(x, below + 16 + 18 * row, f"{name} {amount}", "bet")


def _hand(hand: FeltHand, x: int, y: int, small: bool) -> Iterator[str]:
    width = _CARD_WIDTH + _STEP * max(len(hand.cards) - 1, 0)
    if hand.turn:
        yield (
            f'<rect class="turn" x="{x - width // 2 - 6}" y="{y - 5}" width="{width + 12}" '
            f'height="{_CARD_HEIGHT + 10}" rx="8"/>'
        )
    yield from _cards(hand.cards, x, y)
    said = " ".join((*([hand.total] if hand.total else []), *hand.tags))
    if small:
        yield _text(x + width // 2 + 8, y + 20, said, "total side")
        yield _text(x + width // 2 + 8, y + 38, hand.wager, "bet side")
        return
    yield _text(x, y + _CARD_HEIGHT + 18, said, "total")
    yield _text(x, y + _CARD_HEIGHT + 37, hand.wager, "bet")


def _cards(names: tuple[str, ...], x: int, y: int) -> Iterator[str]:
    left = x - (_CARD_WIDTH + _STEP * max(len(names) - 1, 0)) // 2
    if _DOWN in names or len(names) <= 2:  # two cards lie beside each other
        left = x - (_CARD_WIDTH * len(names) + 4 * max(len(names) - 1, 0)) // 2
        step = _CARD_WIDTH + 4
    else:
        step = _STEP
    for place, name in enumerate(names):
        yield card(name, left + place * step, y)


def card(name: str, x: int, y: int) -> str:
    """One card; of one that lies face down its back."""
    box = f'x="{x}" y="{y}" width="{_CARD_WIDTH}" height="{_CARD_HEIGHT}" rx="5"'
    if name == _DOWN:
        inner = (
            f'<rect class="weave" x="{x + 5}" y="{y + 5}" width="{_CARD_WIDTH - 10}" '
            f'height="{_CARD_HEIGHT - 10}" rx="3"/>'
        )
        return f'<rect class="card back" {box}/>{inner}'
    rank, suit = _RANKS.get(name[0], name[0]), name[1]
    glyph = _GLYPHS[suit] + _PLAIN
    return (
        f'<rect class="card" {box}/>'
        f'<text class="rank suit-{suit}" x="{x + 4}" y="{y + 19}">{rank}</text>'
        f'<text class="pip suit-{suit}" x="{x + 4}" y="{y + 36}">{glyph}</text>'
        f'<text class="large suit-{suit}" x="{x + _CARD_WIDTH - 5}" y="{y + 57}">{glyph}</text>'
    )


def _text(x: int, y: int, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>' if words else ""
