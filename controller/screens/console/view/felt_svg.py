"""The felt drawn large, as SVG, as it lies before whoever deals: the dealer below, seat 1 at the
left hand. Cards and words are upright."""

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
from controller.screens.console.view.felt import Felt, FeltHand, FeltSeat

_DEALER_X, _DEALER_Y = WIDTH // 2, 462
_BESIDE_X, _BESIDE_Y = 160, 490
"""The shoe stands at the dealer's left."""
_TURNED: Final = f'transform="rotate(180 {WIDTH // 2} {HEIGHT // 2})"'
_LARGE: Final = 1.5
"""The dealer's cards, which everybody looks at."""
_USUAL: Final = 1.22
_SMALL: Final = 0.84
"""Of several hands at a seat."""
_OVERLAP: Final = 26
_FAN: Final = 12
_SEAT_WIDTH: Final = 126
"""What a hand may take of the cloth before it lies on its neighbour's."""
_SPLIT_HEIGHT: Final = 64
_SPLIT_WIDTH: Final = 80
_SIDE_LINE: Final = 19
_LINE: Final = 20
_LINE_WIDTH: Final = 112
"""What a line of words may take."""
_LETTER: Final = {"total": 11.0, "bet": 9.0, "bet beside": 7.5, "total side": 8.5}
"""How wide a letter usually is; on a small screen they are larger."""
_LARGER: Final = 1.25


def picture(felt: Felt) -> str:
    body = "".join((*_cloth(), *_dealer(felt), *_beside(felt), *_seats(felt)))
    said = escape(". ".join(felt.words))
    return (
        f'<svg id="felt-picture" class="felt" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="felt-title"><title id="felt-title">{said}</title>{body}</svg>'
    )


def _cloth() -> Iterator[str]:
    yield f'<path class="cloth" d="{CLOTH}" {_TURNED}/>'
    inner = f"M 60 208 C 250 162 {WIDTH - 250} 162 {WIDTH - 60} 208"
    yield f'<path class="seam" d="{inner}" {_TURNED}/>'


def _dealer(felt: Felt) -> Iterator[str]:
    yield _text(_DEALER_X, _DEALER_Y - 12, felt.name, "place")
    yield from _cards(felt.dealer, _DEALER_X, _DEALER_Y, _LARGE, comes=felt.dealer_next)
    if felt.dealer_total:
        width, _ = _size(felt.dealer, _LARGE, comes=felt.dealer_next)
        yield _text(
            _DEALER_X + width // 2 + 18, _DEALER_Y + 58, felt.dealer_total, "total big side"
        )


def _beside(felt: Felt) -> Iterator[str]:
    if felt.spare:
        yield _text(_BESIDE_X, _BESIDE_Y, felt.beside, "place")
        yield from _cards((felt.spare,), _BESIDE_X, _BESIDE_Y + 10, _USUAL, comes=False)


def _seats(felt: Felt) -> Iterator[str]:
    for seat in felt.seats:
        x, y = where(seat.number, len(felt.seats), "dealer")
        if not seat.plays:
            yield f'<circle class="spot" cx="{x}" cy="{y + 38}" r="38"/>'
            yield _text(x, y + 43, seat.name, "place idle")
            continue
        marked = seat.asked or any(hand.turn or hand.next for hand in seat.hands)
        if marked:
            yield f'<rect class="flag" x="{x - 50}" y="{y - 30}" width="100" height="24" rx="12"/>'
        yield _text(x, y - 12, seat.name, "place marked" if marked else "place")
        yield from _seat(seat, x, y)


def _seat(seat: FeltSeat, x: int, y: int) -> Iterator[str]:
    several, below = len(seat.hands) > 1, y + 26
    if several:
        for row, hand in enumerate(seat.hands):
            yield from _hand(hand, x - 30, y + row * _SPLIT_HEIGHT, _SMALL, small=True)
        below = y + len(seat.hands) * _SPLIT_HEIGHT + 12
    else:
        for hand in seat.hands:
            yield from _hand(hand, x, y, _USUAL, small=False)
            below = (
                y + _size(hand.cards, _USUAL, comes=hand.next)[1] + 22 + _LINE * len(_lines(hand))
            )
    for row, (name, amount) in enumerate(seat.bets):
        yield _text(x, below + 18 * row, f"{name} {amount}", "bet beside")


def _hand(hand: FeltHand, x: int, y: int, scale: float, *, small: bool) -> Iterator[str]:
    width, height = _size(hand.cards, scale, comes=hand.next)
    if hand.turn or hand.next or hand.due:
        kind = "turn" if hand.turn or hand.next else "due-now"
        yield (
            f'<rect class="{kind}" x="{x - width // 2 - 7}" y="{y - 3}" width="{width + 14}" '
            f'height="{height + 8}" rx="9"/>'
        )
    yield from _cards(hand.cards, x, y + 1, scale, comes=hand.next)
    for row, (words, kind) in enumerate(_lines(hand)):
        if small:
            yield _text(x + width // 2 + 10, y + 20 + row * _SIDE_LINE, words, f"{kind} side")
        else:
            yield _text(x, y + height + 22 + row * _LINE, words, kind)


def _lines(hand: FeltHand) -> list[tuple[str, str]]:
    """What is said of a hand, each on a line of its own."""
    said = ((hand.total, "total"), (" ".join(hand.tags), "total"), (hand.wager, "bet"))
    return [one for one in said if one[0]]


def _steps(names: tuple[str, ...], scale: float, *, comes: bool) -> tuple[float, int]:
    """From one card to the next: two lie beside each other, more overlap, and many fan downwards,
    so that the corner of each is seen and a seat keeps to its place."""
    count = len(names) + comes
    if count <= 2 or DOWN in names or scale >= _LARGE:
        return CARD_WIDTH + 4, 0
    small = scale <= _SMALL
    room = ((_SPLIT_WIDTH if small else _SEAT_WIDTH) / scale - CARD_WIDTH) / (count - 1)
    if room >= _OVERLAP:
        return _OVERLAP, 0
    return round(room, 1), 0 if small else _FAN


def _size(names: tuple[str, ...], scale: float, *, comes: bool) -> tuple[int, int]:
    steps = max(len(names) + comes - 1, 0)
    along, down = _steps(names, scale, comes=comes)
    return round((CARD_WIDTH + along * steps) * scale), round((CARD_HEIGHT + down * steps) * scale)


def _cards(names: tuple[str, ...], x: int, y: int, scale: float, *, comes: bool) -> Iterator[str]:
    """From left to right; the place of the next card last, dashed."""
    if not names and not comes:
        return
    along, down = _steps(names, scale, comes=comes)
    left = x - _size(names, scale, comes=comes)[0] // 2
    inner = "".join(
        f'<g transform="translate({round(at * along, 1)} {at * down})">{card(name, 0, 0)}</g>'
        for at, name in enumerate(names)
    )
    if comes:
        last = len(names)
        inner += (
            f'<g transform="translate({round(last * along, 1)} {last * down})">'
            f'<rect class="next" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="5"/>'
            f'<text class="next-mark" x="{CARD_WIDTH // 2 + 4}" y="46">+</text></g>'
        )
    yield f'<g transform="translate({left} {y}) scale({scale})">{inner}</g>'


def _text(x: int, y: int, words: str, kind: str) -> str:
    if not words:
        return ""
    usual = len(words) * _LETTER.get(kind, 0)
    close = ""
    if usual * _LARGER > _LINE_WIDTH:
        width = round(min(usual, _LINE_WIDTH))
        close = f' textLength="{width}" lengthAdjust="spacingAndGlyphs"'
    return f'<text class="{kind}" x="{x}" y="{y}"{close}>{escape(words)}</text>'
