"""The pace report: rounds per hour without breaks, by dealer and game; problems; its charts.

A round lasts from the end of the one before it to its own end. After a shuffle, a closed table or a
long pause it lasts from its first wager.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import apsw
from msgspec import Struct

from controller.procedure.model.events import (
    AllPaid,
    Paid,
    ShuffleStarted,
    TableClosed,
    TableOpened,
)
from controller.screens.review.view.queries import ask, times

PAUSE: Final = 5 * 60 * 1_000_000
"""Microseconds between two rounds that count as a break."""
MAX_ROUNDS: Final = 2_000_000
"""Rounds in a report."""
_HOUR: Final = 3600 * 1_000_000
_DAY: Final = 24 * _HOUR
_FEW_DAYS: Final = 4 * _DAY
_BREAKS: Final = (ShuffleStarted, TableClosed, TableOpened)
_ROUNDS: Final = (
    "SELECT first_seq, first_utc, over_seq, over_utc, dealer, void, irregularities, corrected, "
    "last_seq FROM raw_rounds WHERE first_utc BETWEEN ? AND ? ORDER BY round LIMIT ?"
)
_EVENT: Final = (
    "SELECT seq FROM raw_records INDEXED BY raw_records_event "
    "WHERE event = (SELECT id FROM words WHERE word = ?) AND event <> 0 AND seq BETWEEN ? AND ? "
    "ORDER BY seq"
)
_PROBLEMS: Final = (
    "SELECT word, count(*) FROM raw_problems JOIN words ON id = what "
    "WHERE seq BETWEEN ? AND ? GROUP BY what ORDER BY 2 DESC, 1"
)
_CAUGHT: Final = (
    "SELECT count(*) FROM raw_problems p CROSS JOIN raw_records r ON r.seq = p.seq "
    "WHERE p.seq BETWEEN ? AND ? AND r.kind = (SELECT id FROM words WHERE word = 'refusal') "
    "AND r.event IN (SELECT id FROM words WHERE word IN (?, ?))"
)


class PaceFigures(Struct):
    """The figures of a dealer, a game, a time span, or all."""

    name: str
    rounds: int = 0
    timed: int = 0
    """Rounds that were completed."""
    micros: int = 0
    void: int = 0
    irregular: int = 0
    corrected: int = 0

    @property
    def an_hour(self) -> float:
        """Rounds per hour; 0 if none was timed."""
        return self.timed * _HOUR / self.micros if self.micros > 0 else 0.0

    @property
    def seconds(self) -> float:
        """Seconds per round."""
        return self.micros / self.timed / 1e6 if self.timed else 0.0


class PaceReport(Struct, frozen=True):
    since: int
    until: int
    whole: PaceFigures
    dealers: tuple[PaceFigures, ...]
    games: tuple[PaceFigures, ...]
    spans: tuple[PaceFigures, ...]
    """By hour, or by day for a long time."""
    by_day: bool
    problems: tuple[tuple[str, int], ...]
    caught: int
    """Wrong declarations of payments that were refused."""
    shuffles: int
    cut: bool
    """The report does not contain all rounds."""


class GameStart(Struct, frozen=True):
    """The record from which on a game was dealt."""

    seq: int
    game: str


def last_day(db: apsw.Connection) -> tuple[int, int]:
    """Returns the UTC day of the last round, or of the last record."""
    found = ask(db, "SELECT max(first_utc) FROM raw_rounds")[0][0]
    day = (times(db)[1] if found is None else found) // _DAY * _DAY
    return day, day + _DAY - 1


def report(
    db: apsw.Connection,
    since: int,
    until: int,
    games: Sequence[GameStart],
    label: Callable[[int], str],
) -> PaceReport:
    """Returns the report of the rounds that started in this time. `label` formats a time."""
    rows = ask(db, _ROUNDS, since, until, MAX_ROUNDS + 1)
    cut, rows = len(rows) > MAX_ROUNDS, rows[:MAX_ROUNDS]
    first = rows[0][0] if rows else 0
    # Everything of a round is recorded before the next one.
    last = max((row[8] for row in rows), default=0)
    breaks = sorted(
        row[0] for event in _BREAKS for row in ask(db, _EVENT, event.__name__, first, last)
    )
    shuffles = len(ask(db, _EVENT, ShuffleStarted.__name__, first, last))
    problems = ask(db, _PROBLEMS, first, last) if rows else []
    names = (Paid.__name__, AllPaid.__name__)
    caught = ask(db, _CAUGHT, first, last, *names)[0][0] if rows else 0
    by_day = bool(rows) and rows[-1][1] - rows[0][1] > _FEW_DAYS
    found = _summed(rows, _times(rows, breaks), games)
    dealers = ", ".join(str(number) for number in sorted({key.dealer for key in found}))
    words = dict(ask(db, f"SELECT id, word FROM words WHERE id IN ({dealers})"))
    hours = sorted({key.hour for key in found})
    labels = {hour: label(hour)[:10] if by_day else label(hour) for hour in hours}
    return PaceReport(
        since,
        until,
        _together(found, lambda key: "").get("") or PaceFigures(""),
        _sorted(_together(found, lambda key: words.get(key.dealer, ""))),
        _sorted(_together(found, lambda key: games[key.game].game if key.game >= 0 else "")),
        tuple(_together(dict(sorted(found.items())), lambda key: labels[key.hour]).values()),
        by_day,
        tuple((str(word), int(count)) for word, count in problems),
        int(caught),
        shuffles,
        cut,
    )


class _Key(NamedTuple):
    """The groups of a round."""

    hour: int
    dealer: int
    game: int
    """Its index in the games; -1: unknown."""


def _summed(
    rows: Sequence[tuple[Any, ...]], times: Iterable[int], games: Sequence[GameStart]
) -> dict[_Key, list[int]]:
    """Returns the sums of each group: rounds, timed ones, time, void, irregular, corrected."""
    begins = [one.seq for one in games]
    found: dict[_Key, list[int]] = {}
    for row, micros in zip(rows, times, strict=True):
        first_seq, first_utc, _, _, dealer, void, irregular, corrected, _ = row
        key = _Key(first_utc // _HOUR * _HOUR, dealer, bisect_right(begins, first_seq) - 1)
        sums = found.get(key)
        if sums is None:
            sums = found[key] = [0] * 6
        sums[0] += 1
        if micros > 0 and not void:
            sums[1] += 1
            sums[2] += micros
        sums[3] += void
        sums[4] += irregular
        sums[5] += corrected
    return found


def _together(
    found: Mapping[_Key, Sequence[int]], name: Callable[[_Key], str]
) -> dict[str, PaceFigures]:
    """Add up the groups of the same name."""
    paces: dict[str, PaceFigures] = {}
    for key, sums in found.items():
        pace = paces.setdefault(name(key), PaceFigures(name(key)))
        pace.rounds += sums[0]
        pace.timed += sums[1]
        pace.micros += sums[2]
        pace.void += sums[3]
        pace.irregular += sums[4]
        pace.corrected += sums[5]
    return paces


def _sorted(paces: Mapping[str, PaceFigures]) -> tuple[PaceFigures, ...]:
    return tuple(paces[name] for name in sorted(paces))


def _times(rows: Sequence[tuple[Any, ...]], breaks: Sequence[int]) -> Iterable[int]:
    """Yield the microseconds of each round; 0 if it is not over."""
    before_seq = before_utc = 0
    for first_seq, first_utc, over_seq, over_utc, *_ in rows:
        if not over_seq:
            before_seq = 0
            yield 0
            continue
        follows = (
            before_seq > 0
            and 0 <= first_utc - before_utc <= PAUSE
            and bisect_right(breaks, before_seq) == bisect_right(breaks, first_seq)
        )
        yield max(0, over_utc - (before_utc if follows else first_utc))
        before_seq, before_utc = over_seq, over_utc


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
        for factor in (1, 2, 5, 10):
            if size * factor >= most:
                return size * factor
        size *= 10
    while size / 10 >= most:
        size /= 10
    return next(size / 10 * times for times in (1, 2, 5, 10) if size / 10 * times >= most)
