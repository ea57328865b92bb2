"""Search for rounds, newest first.

The index returns rounds in ascending order, so it is queried in windows from the end: wider ones
while little is found, narrower ones if there is too much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import apsw
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.index import RecordQuery, RoundRow, find_rounds
from controller.screens.review.view.queries import ask

SECONDS: Final = 0.2
"""The timeout of a search in seconds; the page then shows its position."""
WIDENING: Final = 8


class SearchResult(Struct, frozen=True):
    """The rounds found, newest first."""

    rounds: tuple[RoundRow, ...]
    before: int | None
    """Rounds before this one were not searched; None: all were."""


class _TooMany(Exception):
    """More rounds than the page shows."""


class _TooLong(Exception):
    """The timeout is over."""


def newest(
    db: apsw.Connection,
    wanted: RecordQuery,
    before: int | None = None,
    limit: int = 50,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Returns matching rounds before `before`. Raises UsageProblem, IndexProblem."""
    low, high = ends(db)
    if wanted.rounds is not None:
        low, high = max(low, wanted.rounds[0]), min(high, wanted.rounds[1])
    if before is not None:
        high = min(high, before - 1)
    found: list[RoundRow] = []
    width, until = limit, None
    begun = clock()
    while low <= high and len(found) < limit:
        first = max(low, high - width + 1)
        try:
            page = _between(db, wanted, (first, high), limit - len(found), clock, until)
        except _TooMany:  # narrower: only the last of them are shown
            width = max(1, (high - first + 1) // WIDENING)
            continue
        except _TooLong:
            break
        found += reversed(page)
        high = first - 1
        width *= WIDENING
        until = begun + SECONDS  # the first window has no timeout
    return SearchResult(tuple(found), high + 1 if low <= high else None)


def ends(db: apsw.Connection) -> tuple[int, int]:
    """Returns the first and last round; (1, 0) without rounds. Raises IndexProblem."""
    # As two queries: one for both would scan all rounds.
    first, last = ask(
        db, "SELECT (SELECT min(round) FROM raw_rounds), (SELECT max(round) FROM raw_rounds)"
    )[0]
    return (1, 0) if first is None else (int(first), int(last))


def _between(
    db: apsw.Connection,
    wanted: RecordQuery,
    rounds: tuple[int, int],
    most: int,
    clock: Callable[[], float],
    until: float | None,
) -> list[RoundRow]:
    """Returns the matching rounds of a window, ascending."""
    window = replace(wanted, rounds=rounds)
    room = min(most + 1, rounds[1] - rounds[0] + 1)
    found: list[RoundRow] = []
    after: int | None = 0
    while after is not None:
        if until is not None and clock() > until:
            raise _TooLong
        page = find_rounds(db, window, after, room)
        found += page.rounds
        if len(found) > most:
            raise _TooMany
        after = page.next
    return found
