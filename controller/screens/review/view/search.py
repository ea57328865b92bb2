"""Rounds that are looked for, the newest first.

An index is walked forward. So it is asked for some of the last rounds, then for some before those:
for more at a time while nothing is found, for fewer where too much is.
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
"""How long a page looks; then it says how far it came."""
_WIDER: Final = 8


class SearchResult(Struct, frozen=True):
    """Rounds, the newest first."""

    rounds: tuple[RoundRow, ...]
    before: int | None
    """Rounds before this one were not looked at; None: there are no more."""


class _TooMany(Exception):
    """More rounds than a page has room for."""


class _TooLong(Exception):
    """There is no time to look at all of these."""


def newest(
    db: apsw.Connection,
    wanted: RecordQuery,
    before: int | None = None,
    limit: int = 50,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """Rounds before round `before` that are wanted. UsageProblem, IndexProblem."""
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
        except _TooMany:  # only the last of them are wanted
            width = max(1, (high - first + 1) // _WIDER)
            continue
        except _TooLong:
            break
        found += reversed(page)
        high = first - 1
        width *= _WIDER
        until = begun + SECONDS  # something has been looked at by now, however long it took
    return SearchResult(tuple(found), high + 1 if low <= high else None)


def ends(db: apsw.Connection) -> tuple[int, int]:
    """The first and the last round; 1 and 0 where there are none. IndexProblem."""
    # Each by itself, along the key: both at once would pass through all rounds.
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
    """Those of these rounds, in order."""
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
