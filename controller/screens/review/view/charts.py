"""Bar charts as SVG, with the names and figures of their tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

_WIDTH: Final = 720
_ROW: Final = 26
_NAME: Final = 300
_LETTERS: Final = 36
"""Letters of a name that fit."""
_FIGURE: Final = 80
_WIDE: Final = 1200
_HEIGHT: Final = 220
_FOOT: Final = 26
_LEFT: Final = 64
_LABELS: Final = 16
"""Labels of a column chart that fit."""


def bars(title: str, rows: Sequence[tuple[str, float]], digits: int = 0) -> str:
    """Horizontal bars."""
    most = max((value for _, value in rows), default=0) or 1
    room = _WIDTH - _NAME - _FIGURE
    drawn = []
    for at, (name, value) in enumerate(rows):
        y = at * _ROW
        width = max(1, round(room * value / most)) if value else 0
        drawn.append(
            f'<text class="name" x="{_NAME - 8}" y="{y + 17}">{escape(_short(name))}'
            f"<title>{escape(name)}</title></text>"
            f'<rect class="bar" x="{_NAME}" y="{y + 4}" width="{width}" height="{_ROW - 8}" '
            f'rx="2"/><text class="figure" x="{_NAME + width + 6}" y="{y + 17}">'
            f"{value:,.{digits}f}</text>"
        )
    return _svg(title, max(1, len(rows)) * _ROW, "".join(drawn))


def columns(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Vertical bars in time order."""
    top = _round_up(max((value for _, value in rows), default=0))
    room = _HEIGHT - _FOOT - 10
    step = (_WIDE - _LEFT) / max(len(rows), 1)
    every = -(-len(rows) // _LABELS)
    drawn = []
    for part in (0.0, 0.5, 1.0):
        y = 10 + room * (1 - part)
        drawn.append(
            f'<path class="grid" d="M {_LEFT} {y:.1f} H {_WIDE}"/>'
            f'<text class="name" x="{_LEFT - 6}" y="{y + 4:.1f}">{top * part:g}</text>'
        )
    for at, (name, value) in enumerate(rows):
        x, height = _LEFT + at * step, room * value / top
        drawn.append(
            f'<rect class="bar" x="{x + step * 0.12:.1f}" y="{10 + room - height:.1f}" '
            f'width="{max(1.0, min(step * 0.76, 48)):.1f}" height="{height:.1f}">'
            f"<title>{escape(name)}: {value:,.0f}</title></rect>"
        )
        if at % max(every, 1) == 0:
            drawn.append(
                f'<text class="under" x="{x + step * 0.12:.1f}" y="{_HEIGHT - 6}">'
                f"{escape(name[-5:])}</text>"
            )
    return _svg(title, _HEIGHT, "".join(drawn), _WIDE)


def _svg(title: str, height: int, body: str, width: int = _WIDTH) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}\u2026"


def _round_up(most: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1.0
    size = 1.0
    while size < most:
        for times in (1, 2, 5, 10):
            if size * times >= most:
                return size * times
        size *= 10
    while size / 10 >= most:
        size /= 10
    return next(size / 10 * times for times in (1, 2, 5, 10) if size / 10 * times >= most)
