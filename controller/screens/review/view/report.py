"""The pace report: rounds per hour without shuffles and breaks, by dealer and game; problems.

A round lasts from the end of the one before it to its own end. After a shuffle, a closed table or a
long pause it lasts from its first wager.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
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
