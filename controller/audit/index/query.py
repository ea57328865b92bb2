"""Searches records and rounds in an index, page by page.

    page = find(index.db, RecordQuery(seat=3, card=13))
    page = find(index.db, RecordQuery(seat=3, card=13), page.next)       # unless it is None

The lists of all terms are intersected, always along the one that is sparsest from the current
record on. The work per page is limited: a page may be short or empty while `next` continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw
from msgspec import Struct

from controller.audit.format.records import KINDS, Kind, RecordPosition
from controller.audit.index.index import sqlite_errors
from controller.audit.index.rows import IndexedRound
from controller.audit.index.schema import RECORDS, ROUNDS, IndexTable
from controller.errors import UsageProblem, printable
from controller.procedure.prompts import AmountFormat, MoneyFormat
from controller.rules.cards import DECK, Card
from controller.rules.irregularities import Irregularity
from controller.rules.money import Amount

CHUNK: Final = 2_000
"""Records of a list that are read in one step."""
SCAN_CHUNK: Final = 4_000
"""Amounts that are read in one step if no list contains only the matching ones."""
_LEAST: Final = -(1 << 62)
_MOST: Final = (1 << 62) - 1


class RecordQuery(Struct, frozen=True):
    """A query for records; all given fields must match."""

    since: int | None = None
    """utc from which records match."""
    until: int | None = None
    """utc up to which records match."""
    rounds: tuple[int, int] | None = None
    """First and last round: from the first wager of the one to the last record of the other."""
    seat: int | None = None
    card: Card | None = None
    """A card that lay face up; with `seat`, at that seat."""
    dealer: str | None = None
    """Who dealt at that time."""
    kind: Kind | None = None
    event: str | None = None
    """The event of a decision or refusal, or the name of what happened."""
    least: Amount | None = None
    most: Amount | None = None
    """Range of an amount in the record; with `seat`, an amount of that seat."""
    irregularity: str | None = None
    person: str | None = None
    """Who did it, or was the second person."""
    problem: bool = False
    """Only errors, refusals and irregularities."""


def check_query(wanted: RecordQuery) -> None:
    """Raise UsageProblem if no record can match."""
    numbers = {name: getattr(wanted, name) for name in ("since", "until", "least", "most", "seat")}
    for name, value in numbers.items():
        if value is not None and not _LEAST <= value <= _MOST:
            raise UsageProblem(name, f"{value} is out of range", f"{_LEAST} to {_MOST}")
    for low, high in (("since", "until"), ("least", "most")):
        least, most = numbers[low], numbers[high]
        if least is not None and most is not None and least > most:
            raise UsageProblem(high, f"{most} is less than {low}, {least}", f"{least} or more")
    first, last = wanted.rounds or (1, 1)
    names = [one.value for one in Irregularity]
    seat, card, kind, irregularity = wanted.seat, wanted.card, wanted.kind, wanted.irregularity
    checks = (
        (
            "rounds",
            1 <= first <= last <= _MOST,
            f"no rounds are {first} to {last}",
            "from 1 on, in order",
        ),
        ("seat", seat is None or seat >= 1, f"there is no seat {seat}", "1 or more"),
        ("card", card is None or card in DECK, f"{card} is no card", f"0 to {len(DECK) - 1}"),
        ("kind", kind is None or kind in KINDS, f"no record is a {kind!a}", ", ".join(KINDS)),
        (
            "irregularity",
            irregularity is None or irregularity in names,
            f"{irregularity!a} is no irregularity",
            ", ".join(names),
        ),
    )
    for name, valid, what, allowed in checks:
        if not valid:
            raise UsageProblem(name, what, allowed)


class SearchTerm(NamedTuple):
    """One condition of a query."""

    walk: str
    """SQL for its records after :after and up to :upto, sorted, as `seq`; may have duplicates."""
    holds: str
    """SQL that tests the record w.seq. It uses a list if there is one: the records are larger to
    read."""
    values: dict[str, int]
    bounded: str = ""
    """SQL for the reach of one step if a walk skips records: number of matches, and the seq
    reached; no seq at the end."""

    @property
    def reach(self) -> str:
        """SQL for the reach of one step."""
        last = f"CASE count(*) WHEN {CHUNK} THEN max(seq) END"
        return self.bounded or f"SELECT count(*), {last} FROM ({self.walk} LIMIT {CHUNK})"


class SearchTerms(NamedTuple):
    terms: tuple[SearchTerm, ...]
    first: int
    last: int
    """All matches are within these records."""


_IN: Final = "seq > :after AND seq <= :upto"
_EVERY: Final = SearchTerm(f"SELECT seq FROM raw_records WHERE {_IN} ORDER BY seq", "TRUE", {})


def terms_of(db: apsw.Connection, wanted: RecordQuery) -> SearchTerms | None:
    """The terms of a query; None if nothing can match."""
    first, last = 1, int(db.execute("SELECT seq FROM goes").get)
    if wanted.rounds is not None:
        span = _span(db, *wanted.rounds)
        if span is None:
            return None
        first, last = span
    words = {
        "dealer": wanted.dealer,
        "kind": wanted.kind,
        "event": wanted.event,
        "irregularity": wanted.irregularity,
        "person": wanted.person,
    }
    terms = []
    for name, word in words.items():
        if word is not None:
            number = db.execute("SELECT id FROM words WHERE word = ?", (word,)).get
            if not number:
                return None
            terms.append(_BY_WORD[name]._replace(values={name: number}))
    if wanted.since is not None or wanted.until is not None:
        terms.append(_time(wanted))
    if wanted.card is not None:
        terms.append(_card(wanted.card, wanted.seat))
    if wanted.least is not None or wanted.most is not None:
        terms.append(_amount(db, wanted))
    elif wanted.seat is not None and wanted.card is None:
        terms.append(_SEAT._replace(values={"seat": wanted.seat}))
    if wanted.problem:
        terms.append(_PROBLEM)
    return SearchTerms(tuple(terms) or (_EVERY,), first, last)


def _span(db: apsw.Connection, first: int, last: int) -> tuple[int, int] | None:
    """The first and last record of these rounds, which are contiguous."""
    found = "SELECT round, first_seq, last_seq FROM raw_rounds WHERE round"
    begin = db.execute(f"{found} >= ? ORDER BY round LIMIT 1", (first,)).fetchone()
    end = db.execute(f"{found} <= ? ORDER BY round DESC LIMIT 1", (last,)).fetchone()
    if begin is None or end is None or begin[0] > end[0]:
        return None
    return int(begin[1]), int(end[2])


_SEAT: Final = SearchTerm(
    f"SELECT seq FROM raw_seats WHERE seat = :seat AND {_IN} ORDER BY seq",
    "EXISTS (SELECT 1 FROM raw_seats WHERE seat = :seat AND seq = w.seq)",
    {},
)
_PROBLEM: Final = SearchTerm(
    f"SELECT seq FROM raw_problems WHERE {_IN} ORDER BY seq",
    "EXISTS (SELECT 1 FROM raw_problems WHERE seq = w.seq)",
    {},
)


def _within(table: str, spans: str, also: str) -> str:
    """SQL for rows of a table within spans of records; each span is looked up by key."""
    return (
        f"FROM {spans} CROSS JOIN {table} t "
        f"WHERE {also} AND s.last_seq > :after AND s.first_seq <= :upto "
        "AND t.seq BETWEEN max(s.first_seq, :after + 1) AND min(s.last_seq, :upto)"
    )


_SHIFTS: Final = "raw_shifts s INDEXED BY raw_shifts_dealer"
_SINCE: Final = (
    "(SELECT max(first_seq) FROM raw_shifts WHERE dealer = :dealer AND first_seq <= :after)"
)
"""The dealer's first shift that counts."""
_DEALS: Final = f"s.dealer = :dealer AND s.first_seq >= coalesce({_SINCE}, 0)"
_BY_WORD: Final = {
    "dealer": SearchTerm(
        f"SELECT t.seq AS seq {_within('raw_records', _SHIFTS, _DEALS)} "
        "ORDER BY s.first_seq, t.seq",
        "EXISTS (SELECT 1 FROM raw_records WHERE seq = w.seq AND dealer = :dealer)",
        {},
    ),
    "kind": SearchTerm(
        "SELECT seq FROM raw_records INDEXED BY raw_records_kind "
        f"WHERE kind = :kind AND {_IN} ORDER BY seq",
        "EXISTS (SELECT 1 FROM raw_records INDEXED BY raw_records_kind "
        "WHERE kind = :kind AND seq = w.seq)",
        {},
    ),
    "event": SearchTerm(
        "SELECT seq FROM raw_records INDEXED BY raw_records_event "
        f"WHERE event = :event AND event <> 0 AND {_IN} ORDER BY seq",
        "EXISTS (SELECT 1 FROM raw_records INDEXED BY raw_records_event "
        "WHERE event = :event AND event <> 0 AND seq = w.seq)",
        {},
    ),
    "irregularity": SearchTerm(
        f"SELECT seq FROM raw_irregularities WHERE what = :irregularity AND {_IN} ORDER BY seq",
        "EXISTS (SELECT 1 FROM raw_irregularities WHERE what = :irregularity AND seq = w.seq)",
        {},
    ),
    "person": SearchTerm(
        f"SELECT seq FROM raw_people WHERE name = :person AND {_IN} ORDER BY seq",
        "EXISTS (SELECT 1 FROM raw_people WHERE name = :person AND seq = w.seq)",
        {},
    ),
}


def _time(wanted: RecordQuery) -> SearchTerm:
    """Search by segment, since each knows its time range: the clock may have been set, so records
    are not sorted by time."""
    values = {
        "since": _LEAST if wanted.since is None else wanted.since,
        "until": _MOST if wanted.until is None else wanted.until,
    }
    also = "s.last_utc >= :since AND s.first_utc <= :until AND t.utc BETWEEN :since AND :until"
    walk = f"SELECT t.seq AS seq {_within('raw_records', 'raw_segments s', also)}"
    holds = "EXISTS (SELECT 1 FROM raw_records WHERE seq = w.seq AND utc BETWEEN :since AND :until)"
    return SearchTerm(f"{walk} ORDER BY s.number, t.seq", holds, values)


def _card(card: Card, seat: int | None) -> SearchTerm:
    values = {"card": card}
    there = ""
    if seat is not None:
        values["seat"] = seat
        there = " AND seat = :seat"
    return SearchTerm(
        f"SELECT seq FROM raw_cards WHERE card = :card AND {_IN}{there} ORDER BY seq",
        f"EXISTS (SELECT 1 FROM raw_cards WHERE card = :card AND seq = w.seq{there})",
        values,
    )


def _amount(db: apsw.Connection, wanted: RecordQuery) -> SearchTerm:
    """Few matching amounts are sorted; otherwise the search goes by segment, since each knows its
    range of amounts."""
    values = {
        "least": _LEAST if wanted.least is None else wanted.least,
        "most": _MOST if wanted.most is None else wanted.most,
    }
    between = "amount BETWEEN :least AND :most"
    by_amount = f"FROM raw_amounts INDEXED BY raw_amounts_amount WHERE {between}"
    count = f"SELECT count(*) FROM (SELECT 1 {by_amount} LIMIT {CHUNK})"
    few = int(db.execute(count, values).get) < CHUNK
    there = ""
    if wanted.seat is not None:
        values["seat"] = wanted.seat
        there = " AND seat = :seat"
    holds = f"EXISTS (SELECT 1 FROM raw_amounts WHERE seq = w.seq AND {between}{there})"
    if few:
        return SearchTerm(f"SELECT seq {by_amount} AND {_IN}{there} ORDER BY seq", holds, values)
    can = "s.least <= :most AND s.most >= :least AND s.most >= s.least"
    within = _within("raw_amounts", "raw_segments s", can)
    order = "ORDER BY s.number, t.seq, t.nth"
    passed = f"SELECT t.seq AS seq, t.amount AS amount, t.seat AS seat {within} {order}"
    return SearchTerm(
        f"SELECT t.seq AS seq {within} AND t.{between}{there.replace('seat =', 't.seat =')} "
        f"{order}",
        holds,
        values,
        f"SELECT count(*) FILTER (WHERE {between}{there}), "
        f"CASE count(*) WHEN {SCAN_CHUNK} THEN max(seq) END FROM ({passed} LIMIT {SCAN_CHUNK})",
    )


_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?Z?", re.ASCII
)
_AMOUNT: Final = re.compile(r"-?(?:\d{1,15}|\d{1,3}(?:,\d{3}){1,4})(?:\.(\d{1,6}))?", re.ASCII)
_FROM_TO: Final = re.compile(r"(-?[^-]+)(?:(-)(-?[^-]+)?)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_SHOWN: Final = 60


def _shown(text: str) -> str:
    short = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return f'"{printable(short)}"'


def parse_time(name: str, text: str, *, end: bool = False) -> int:
    """Parse a time; returns microseconds since 1970. With `end`, the last moment of a day or
    second."""
    found = _TIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        year, month, day, hour, minute, second = (int(one or 0) for one in found.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise UsageProblem(
            name,
            f"{_shown(text)} is no time",
            "a time in UTC, such as 2027-01-15 or 2027-01-15T08:30:00",
        ) from None
    part = found[7]
    utc: int = (moment - _EPOCH) // timedelta(microseconds=1) + int((part or "").ljust(6, "0"))
    if not end:
        return utc
    if part is not None:
        return utc + int("9" * (6 - len(part)) or 0)
    step = 1 if found[6] else 60 if found[5] else 86_400
    return utc + step * 1_000_000 - 1


def parse_amount(name: str, text: str, money: AmountFormat) -> int:
    """Parse an amount as the table writes it, with its currency or without: 25, $12.50, 1,250."""
    digits, bare = 0, text
    if isinstance(money, MoneyFormat):
        digits, bare = money.minor_digits, text.replace(money.symbol, "", 1).replace(" ", "")
    found = _AMOUNT.fullmatch(bare)
    if found is None or len(found[1] or "") > digits:
        raise UsageProblem(
            name,
            f"{_shown(text)} is no amount",
            f"an amount such as {money.amount(25 * 10**digits)}",
        )
    whole, _, rest = bare.replace(",", "").partition(".")
    size = int(whole.lstrip("-") + rest.ljust(digits, "0"))
    return -size if whole.startswith("-") else size


def parse_amounts(name: str, text: str, money: AmountFormat) -> tuple[int, int | None]:
    """Parse a range of amounts: 25, 25-100, or 25- for 25 and more."""
    found = _FROM_TO.fullmatch(text)
    if found is None:
        raise UsageProblem(name, f"{_shown(text)} is no amount", "N, N-M, or N- for N and more")
    least = parse_amount(name, found[1], money)
    if found[2] is None:
        return least, least
    most = None if found[3] is None else parse_amount(name, found[3], money)
    if most is not None and most < least:
        raise UsageProblem(name, f"{_shown(text)} ends before it begins", "N-M with M not less")
    return least, most


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


class RoundRow(IndexedRound[str], frozen=True, gc=False):
    """A round in the index."""


class RecordPage(Struct, frozen=True):
    rows: tuple[IndexRow, ...]
    next: int | None
    """Continue after this record; None: there are no more."""


class RoundPage(Struct, frozen=True):
    rounds: tuple[RoundRow, ...]
    next: int | None
    """Continue after this record; None: there are no more."""


def find(db: apsw.Connection, wanted: RecordQuery, after: int = 0, limit: int = 100) -> RecordPage:
    """Returns records after seq `after`, in order. Raises UsageProblem and IndexProblem."""
    with _read_transaction(db, wanted, after, limit):
        terms = terms_of(db, wanted)
        if terms is None:
            return RecordPage((), None)
        found, next_after, _ = _search(db, terms, after, limit, _COLUMNS, MAX_STEPS)
        return RecordPage(tuple(IndexRow(*row) for row in found), next_after)


def find_rounds(
    db: apsw.Connection, wanted: RecordQuery, after: int = 0, limit: int = 100
) -> RoundPage:
    """Returns rounds with a matching record after seq `after`.

    Raises UsageProblem and IndexProblem.
    """
    with _read_transaction(db, wanted, after, limit):
        terms = terms_of(db, wanted)
        first = db.execute("SELECT min(first_seq) FROM raw_rounds").get
        if terms is None or first is None:
            return RoundPage((), None)
        rounds: list[RoundRow] = []
        next_after: int | None = max(after, first - 1)
        steps = MAX_STEPS
        while next_after is not None and steps and len(rounds) < limit:
            after = next_after
            found, next_after, steps = _search(db, terms, after, MAX_PAGE, "r.seq", steps)
            for (seq,) in found:
                if seq > after and len(rounds) < limit:
                    rounds.append(_round_of(db, seq))
                    after = rounds[-1].last_seq
            if len(rounds) == limit or (next_after is not None and next_after < after):
                next_after = after if after < terms.last else None
        return RoundPage(tuple(rounds), next_after)


@contextmanager
def _read_transaction(
    db: apsw.Connection, wanted: RecordQuery, after: int, limit: int
) -> Iterator[None]:
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


def _search(
    db: apsw.Connection, terms: SearchTerms, after: int, limit: int, shown: str, steps: int
) -> tuple[list[tuple[Any, ...]], int | None, int]:
    """Returns rows after `after`, where to continue, and how many of `steps` are left."""
    rows: list[tuple[Any, ...]] = []
    after = max(after, terms.first - 1)
    while steps and after < terms.last:
        steps -= 1
        term, upto = _sparsest(db, terms, {"after": after, "upto": terms.last})
        values = {name: value for each in terms.terms for name, value in each.values.items()}
        rows += db.execute(
            statement(terms, term, shown),
            {**values, "after": after, "upto": upto, "limit": limit - len(rows)},
        )
        if len(rows) == limit:
            upto = rows[-1][0]
            next_after = upto if upto < terms.last else None
            return [row[1:] for row in rows], next_after, steps
        after = upto
    return [row[1:] for row in rows], after if after < terms.last else None, steps


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


_COLUMNS: Final = _columns(RECORDS, IndexRow)
_ROUND: Final = _columns(ROUNDS, RoundRow)
