"""What pictures of a felt share: the cloth, where each seat lies on it, and a card."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Side: TypeAlias = Literal["players", "dealer"]
"""From where it is seen: by a camera before the players, or by whoever deals."""

WIDTH, HEIGHT = 1120, 600
CARD_WIDTH, CARD_HEIGHT = 46, 64
DOWN: Final = "--"
"""The name of a card that lies face down."""
CLOTH: Final = (
    f"M 24 8 H {WIDTH - 24} V 300 C {WIDTH - 40} 500 {WIDTH - 260} {HEIGHT - 8} {WIDTH // 2} "
    f"{HEIGHT - 8} C 260 {HEIGHT - 8} 40 500 24 300 Z"
)
_SEAT_Y: Final = (232, 292, 328, 340, 328, 292, 232)
"""Where the seats of a table with seven of them begin, from one end to the other."""
_TURNED: Final = 420
"""What the two heights add up to at which a seat begins, seen from either side."""
_MARGIN: Final = 140
_GLYPHS: Final = {"C": "\u2663", "D": "\u2666", "H": "\u2665", "S": "\u2660"}
_PLAIN: Final = "\ufe0e"
"""After a suit: no picture of it, a letter."""
_RANKS: Final = {"T": "10"}


def where(number: int, seats: int, side: Side = "players") -> tuple[int, int]:
    """Seat 1 lies to the right of a picture with the dealer above, and to the left of one that is
    turned round, with the dealer below."""
    share = 0.5 if seats == 1 else (seats - number) / (seats - 1)
    at = share * (len(_SEAT_Y) - 1)
    low = min(int(at), len(_SEAT_Y) - 2)
    y = _SEAT_Y[low] + (at - low) * (_SEAT_Y[low + 1] - _SEAT_Y[low])
    x = _MARGIN + share * (WIDTH - 2 * _MARGIN)
    if side == "dealer":
        x, y = WIDTH - x, _TURNED - y
    return round(x), round(y)


def card(name: str, x: int, y: int) -> str:
    """One card; of one that lies face down its back."""
    box = f'x="{x}" y="{y}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" rx="5"'
    if name == DOWN:
        inner = (
            f'<rect class="weave" x="{x + 5}" y="{y + 5}" width="{CARD_WIDTH - 10}" '
            f'height="{CARD_HEIGHT - 10}" rx="3"/>'
        )
        return f'<rect class="card back" {box}/>{inner}'
    rank, suit = _RANKS.get(name[0], name[0]), name[1]
    glyph = _GLYPHS[suit] + _PLAIN
    return (
        f'<rect class="card" {box}/>'
        f'<text class="rank suit-{suit}" x="{x + 4}" y="{y + 19}">{rank}</text>'
        f'<text class="pip suit-{suit}" x="{x + 4}" y="{y + 36}">{glyph}</text>'
        f'<text class="large suit-{suit}" x="{x + CARD_WIDTH - 5}" y="{y + 57}">{glyph}</text>'
    )
