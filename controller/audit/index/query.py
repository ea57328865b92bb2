"""Searches records and rounds in an index, page by page.

    page = find(index.db, RecordQuery(seat=3, card=13))
    page = find(index.db, RecordQuery(seat=3, card=13), page.next)       # unless it is None

The lists of all terms are intersected, always along the one that is sparsest from the current
record on. The work per page is limited: a page may be short or empty while `next` continues.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec import Struct

from controller.audit.format.records import RecordPosition
from controller.audit.index.file import sqlite_errors
from controller.audit.index.schema import RECORDS, ROUNDS, IndexTable
from controller.audit.index.search_terms import (
    RecordQuery,
    SearchTerm,
    SearchTerms,
    check_query,
    terms_of,
)
from controller.errors import UsageProblem
from controller.rules.money import Amount

MAX_PAGE: Final = 1_000
"""Maximum of rows per page."""
MAX_STEPS: Final = 40
"""Maximum of walks per page."""


class IndexRow(Struct, frozen=True, gc=False):
    """A record in the index."""

    seq: int
    utc: int
    day: str
    round: int
    kind: str
    role: str
    name: str
    seat: int
    event: str
    dealer: str
    cause: int
    segment: int
    offset: int
    length: int

    @property
    def place(self) -> RecordPosition:
        return RecordPosition(self.segment, self.offset, self.seq)


class RoundRow(Struct, frozen=True, gc=False):
    """A round: from its first wager to the record before the wagers of the next round."""

    round: int
    first_seq: int
    last_seq: int
    first_utc: int
    last_utc: int
    over_seq: int
    """When the cards were cleared away; 0 if the round is not over."""
    over_utc: int
    dealer: str
    """Who dealt its first card."""
    wagered: Amount
    won: Amount
    void: int
    """1 if it was voided."""
    irregularities: int
    corrected: int
    """Number of its payments that were corrected, during it or later."""


class RecordPage(Struct, frozen=True):
    rows: tuple[IndexRow, ...]
    next: int | None
    """Continue after this record; None: there are no more."""


class RoundPage(Struct, frozen=True):
    rounds: tuple[RoundRow, ...]
    next: int | None
    """Continue after this record; None: there are no more."""


def find(db: apsw.Connection, wanted: RecordQuery, after: int = 0, limit: int = 100) -> RecordPage:
    """Return records after seq `after`, in order. Raises UsageProblem and IndexProblem."""
    with _asked(db, wanted, after, limit):
        terms = terms_of(db, wanted)
        if terms is None:
            return RecordPage((), None)
        found, goes_on, _ = _look(db, terms, after, limit, _SHOWN, MAX_STEPS)
        return RecordPage(tuple(IndexRow(*row) for row in found), goes_on)


def find_rounds(
    db: apsw.Connection, wanted: RecordQuery, after: int = 0, limit: int = 100
) -> RoundPage:
    """Return rounds with a matching record after seq `after`.

    Raises UsageProblem and IndexProblem.
    """
    with _asked(db, wanted, after, limit):
        terms = terms_of(db, wanted)
        first = db.execute("SELECT min(first_seq) FROM raw_rounds").get
        if terms is None or first is None:
            return RoundPage((), None)
        rounds: list[RoundRow] = []
        goes_on: int | None = max(after, first - 1)
        goes = MAX_STEPS
        while goes_on is not None and goes and len(rounds) < limit:
            after = goes_on
            found, goes_on, goes = _look(db, terms, after, MAX_PAGE, "r.seq", goes)
            for (seq,) in found:
                if seq > after and len(rounds) < limit:
                    rounds.append(_round_of(db, seq))
                    after = rounds[-1].last_seq
            if len(rounds) == limit or (goes_on is not None and goes_on < after):
                goes_on = after if after < terms.last else None
        return RoundPage(tuple(rounds), goes_on)


@contextmanager
def _asked(db: apsw.Connection, wanted: RecordQuery, after: int, limit: int) -> Iterator[None]:
    """Check the arguments, and run the block in one read transaction."""
    check_query(wanted)
    if not 1 <= limit <= MAX_PAGE:
        raise UsageProblem("limit", f"a page of {limit} rows", f"1 to {MAX_PAGE}")
    if not 0 <= after < 1 << 62:
        raise UsageProblem("after", f"there is no record {after}", "0, or the last one seen")
    with sqlite_errors(Path(db.filename)):
        # Disable temporary indexes: SQLite would build one over a whole table.
        db.pragma("automatic_index", False)
        db.execute("BEGIN")
        try:
            yield
        finally:
            if db.in_transaction:  # SQLite rolls back automatically after some errors
                db.execute("COMMIT")


def _look(
    db: apsw.Connection, terms: SearchTerms, after: int, limit: int, shown: str, goes: int
) -> tuple[list[tuple[Any, ...]], int | None, int]:
    """Return rows after `after`, where to continue, and how many of `goes` are left."""
    rows: list[tuple[Any, ...]] = []
    after = max(after, terms.first - 1)
    while goes and after < terms.last:
        goes -= 1
        at = {"after": after, "upto": terms.last}
        term, upto = _sparsest(db, terms, at)
        values = {name: value for each in terms.terms for name, value in each.values.items()}
        rows += db.execute(
            statement(terms, term, shown),
            {**values, "after": after, "upto": upto, "limit": limit - len(rows)},
        )
        if len(rows) == limit:
            upto = rows[-1][0]
            goes_on = upto if upto < terms.last else None
            return [row[1:] for row in rows], goes_on, goes
        after = upto
    return [row[1:] for row in rows], after if after < terms.last else None, goes


def statement(terms: SearchTerms, along: SearchTerm, shown: str) -> str:
    """SQL for the records after :after and up to :upto that match all terms, walking along one of
    them."""
    others = " AND ".join(other.holds for other in terms.terms if other is not along) or "TRUE"
    return (
        f"SELECT r.seq, {shown} FROM raw_records r WHERE r.seq IN "
        f"(SELECT w.seq FROM ({along.walk}) w WHERE {others}) ORDER BY r.seq LIMIT :limit"
    )


def _sparsest(
    db: apsw.Connection, terms: SearchTerms, at: dict[str, int]
) -> tuple[SearchTerm, int]:
    """The term that gets furthest within CHUNK matches, and the seq that it reaches."""
    best: tuple[int, int, SearchTerm] | None = None
    for term in terms.terms:
        row = db.execute(term.reach, {**term.values, **at}).fetchone()
        assert row is not None
        count, upto = row
        upto = at["upto"] if upto is None else upto
        if best is None or (upto, -count) > best[:2]:
            best = upto, -count, term
    assert best is not None
    return best[2], best[0]


def _round_of(db: apsw.Connection, seq: int) -> RoundRow:
    """The round of a record. From the first round on, every record is in one."""
    row = db.execute(
        f"SELECT {_ROUND} FROM raw_rounds r WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1",
        (seq,),
    ).fetchone()
    assert row is not None
    return RoundRow(*row)


def _columns(table: IndexTable, of: type[Struct]) -> str:
    """The columns of a row r in the order of the struct, with words instead of their numbers."""
    return ", ".join(
        f"(SELECT word FROM words WHERE id = r.{name})" if name in table.words else f"r.{name}"
        for name in of.__struct_fields__
    )


_SHOWN: Final = _columns(RECORDS, IndexRow)
_ROUND: Final = _columns(ROUNDS, RoundRow)
