"""SQL queries of the index, each by a key; the search for rounds; records at their locations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.errors import CannotWrite, RecordDamaged
from controller.audit.format.records import OpenedData, Record, RecordPosition
from controller.audit.format.segments import HEAD_SIZE, segment_file, unpack
from controller.audit.index import RecordQuery, RoundRow, find_rounds, sqlite_errors
from controller.audit.read.reader import ASK, record_of
from controller.rules.cards import DECK, Card
from controller.rules.money import Amount

_ROUND: Final = ", ".join(RoundRow.__struct_fields__)
_PLACES: Final = (
    "SELECT segment, offset, seq, length FROM raw_records WHERE seq BETWEEN ? AND ? ORDER BY seq"
)
_KIND: Final = "SELECT id FROM words WHERE word = ?"


class RecordLocation(Struct, frozen=True):
    """The location of a record."""

    place: RecordPosition
    length: int


class SettledBet(Struct, frozen=True):
    """One settled bet."""

    seq: int
    seat: int
    hand: int
    bet: str
    outcome: str
    stake: Amount
    returned: Amount
    why: str


class ProblemRecord(Struct, frozen=True):
    """A record of a problem: an error, a refusal, an irregularity."""

    seq: int
    what: str
    utc: int
    round: int
    kind: str
    name: str
    seat: int
    event: str
    dealer: str


def round_of(db: apsw.Connection, number: int) -> RoundRow | None:
    rows = ask(db, f"SELECT {_ROUND} FROM rounds WHERE round = ?", number)
    return RoundRow(*rows[0]) if rows else None


def round_at(db: apsw.Connection, seq: int) -> int:
    """Returns the round of a record; 0 before the first."""
    return _number(
        db, "SELECT round FROM raw_rounds WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1", seq
    )


def beside(db: apsw.Connection, number: int) -> tuple[int, int]:
    """Returns the rounds before and after; 0: no such round."""
    before = "SELECT max(round) FROM raw_rounds WHERE round < ?"
    after = "SELECT min(round) FROM raw_rounds WHERE round > ?"
    return _number(db, before, number), _number(db, after, number)


def last_seq(db: apsw.Connection) -> int:
    return _number(db, "SELECT seq FROM goes")


def first_seq(db: apsw.Connection) -> int:
    return _number(db, "SELECT min(seq) FROM raw_records")


def times(db: apsw.Connection) -> tuple[int, int]:
    """Returns the minimum and maximum time, even if the clock was set back."""
    first, last = ask(db, "SELECT min(first_utc), max(last_utc) FROM raw_segments")[0]
    return int(first or 0), int(last or 0)


def lying(db: apsw.Connection, first: int, last: int, most: int) -> list[RecordLocation]:
    """Returns the locations of these records, up to a limit."""
    rows = ask(db, f"{_PLACES} LIMIT ?", first, last, most)
    return [RecordLocation(RecordPosition(*row[:3]), row[3]) for row in rows]


def last_of_kind(db: apsw.Connection, kind: str, seq: int) -> RecordLocation | None:
    """Returns the last record of a kind up to `seq`."""
    asked = (
        "SELECT segment, offset, seq, length FROM raw_records WHERE seq = (SELECT max(seq) "
        f"FROM raw_records INDEXED BY raw_records_kind WHERE kind = ({_KIND}) AND seq <= ?)"
    )
    rows = ask(db, asked, kind, seq)
    return RecordLocation(RecordPosition(*rows[0][:3]), rows[0][3]) if rows else None


def all_of_kind(db: apsw.Connection, kind: str) -> list[RecordLocation]:
    asked = (
        "SELECT segment, offset, seq, length FROM raw_records INDEXED BY raw_records_kind "
        f"WHERE kind = ({_KIND}) ORDER BY seq"
    )
    return [RecordLocation(RecordPosition(*row[:3]), row[3]) for row in ask(db, asked, kind)]


def bets(db: apsw.Connection, first: int, last: int) -> list[SettledBet]:
    """By seat, in the order of settlement."""
    names = ", ".join(SettledBet.__struct_fields__)
    asked = f"SELECT {names} FROM bets WHERE seq BETWEEN ? AND ? ORDER BY seat, seq, nth"
    return [SettledBet(*row) for row in ask(db, asked, first, last)]


def seats_of_cards(db: apsw.Connection, first: int, last: int) -> dict[tuple[int, Card], int]:
    """Returns the seat of each face-up card, by record and card."""
    found: dict[tuple[int, Card], int] = {}
    for seq, card, seat in ask(db, _CARDS, first, last):
        found.setdefault((seq, card), seat)
    return found


_CARDS: Final = (
    "SELECT seq, card, seat FROM raw_cards "
    f"WHERE card IN ({', '.join(map(str, DECK))}) AND seq BETWEEN ? AND ?"
)
"""Names every card, so that SQLite uses the table's key, which begins with the card."""


def problems_in(db: apsw.Connection, first: int, last: int) -> dict[int, str]:
    """Returns the problems by record."""
    return dict(ask(db, "SELECT seq, what FROM problems WHERE seq BETWEEN ? AND ?", first, last))


def problems_of(db: apsw.Connection, found: Sequence[RoundRow]) -> dict[int, int]:
    """Returns the number of problems of each round."""
    asked = "SELECT count(*) FROM raw_problems WHERE seq BETWEEN ? AND ?"
    return {one.round: _number(db, asked, one.first_seq, one.last_seq) for one in found}


def problem_beside(db: apsw.Connection, first: int, last: int) -> tuple[int, int]:
    """Returns the problems before and after a range; 0: no such problem."""
    before = "SELECT max(seq) FROM raw_problems WHERE seq < ?"
    after = "SELECT min(seq) FROM raw_problems WHERE seq > ?"
    return _number(db, before, first), _number(db, after, last)


def problems(
    db: apsw.Connection, *, before: int | None, what: str | None, limit: int
) -> list[ProblemRecord]:
    """Returns the newest problems before `before`."""
    asked = (
        "SELECT p.seq, p.what, r.utc, r.round, r.kind, r.name, r.seat, r.event, r.dealer "
        "FROM problems p CROSS JOIN records r ON r.seq = p.seq "
        "WHERE p.seq < ? AND (? IS NULL OR p.what = ?) ORDER BY p.seq DESC LIMIT ?"
    )
    top = (1 << 62) if before is None else before
    return [ProblemRecord(*row) for row in ask(db, asked, top, what, what, limit)]


def problem_names(db: apsw.Connection) -> list[tuple[str, int]]:
    """Returns each kind of problem with its count."""
    asked = (
        "SELECT word, count FROM (SELECT what, count(*) AS count FROM raw_problems GROUP BY what) "
        "JOIN words ON id = what ORDER BY word"
    )
    return [(str(word), int(count)) for word, count in ask(db, asked)]


def names(db: apsw.Connection) -> tuple[list[str], list[str]]:
    """Returns all dealers, and all people."""
    dealers = "SELECT word FROM words WHERE id IN (SELECT dealer FROM raw_shifts) ORDER BY word"
    # A loose index scan: as many steps as there are names.
    people = (
        "WITH RECURSIVE p(id) AS (SELECT min(name) FROM raw_people UNION ALL "
        "SELECT (SELECT min(name) FROM raw_people WHERE name > p.id) FROM p WHERE p.id NOT NULL) "
        "SELECT word FROM words JOIN p USING (id) ORDER BY word"
    )
    return [row[0] for row in ask(db, dealers)], [row[0] for row in ask(db, people)]


def _number(db: apsw.Connection, asked: str, *values: Any) -> int:
    row = next(iter(ask(db, asked, *values)), (None,))
    return 0 if row[0] is None else int(row[0])


def ask(db: apsw.Connection, asked: str, *values: Any) -> list[tuple[Any, ...]]:
    """Returns all rows. Raises IndexProblem."""
    with sqlite_errors(Path(db.filename)):
        return db.execute(asked, values).fetchall()


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
    """Returns matching rounds before `before`, newest first. Raises UsageProblem, IndexProblem.

    The index returns rounds in ascending order, so it is queried in windows from the end: wider
    ones while little is found, narrower ones if there is too much."""
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


APART: Final = 256 * 1024
"""Bytes between two records that are faster read than skipped."""


def read_back(record: Path, wanted: Sequence[RecordLocation]) -> list[Record]:
    """Returns the records in order. Raises RecordDamaged if a location is wrong, and
    CannotWrite."""
    found: list[Record] = []
    for number, group in groupby(wanted, key=lambda one: one.place.segment):
        file = segment_file(record, number)
        for stretch in _stretches(list(group)):
            found += _read(file, stretch)
    return found


def opened_of(record: Path, lying: RecordLocation) -> OpenedData:
    """Returns an `opened` record. Raises RecordDamaged."""
    (found,) = read_back(record, [lying])
    try:
        return msgspec.json.decode(found.data, type=OpenedData)
    except msgspec.DecodeError as problem:
        raise RecordDamaged(record, f"{lying.place}: cannot be read: {problem}", ASK) from None


def _stretches(lying: list[RecordLocation]) -> list[list[RecordLocation]]:
    """Group records that are close to each other, to be read at once."""
    found = [[lying[0]]]
    for one in lying[1:]:
        last = found[-1][-1]
        if one.place.offset - last.place.offset - last.length < APART:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _read(file: Path, lying: list[RecordLocation]) -> list[Record]:
    start = lying[0].place.offset
    end = lying[-1].place.offset + HEAD_SIZE + lying[-1].length
    try:
        with file.open("rb", buffering=0) as opened:
            opened.seek(start)
            data = opened.read(end - start)
    except OSError as problem:
        raise CannotWrite(file, f"cannot be read: {problem.strerror}", "mend that") from None
    found = []
    for one in lying:
        frame = unpack(data, one.place.offset - start)
        if frame is None or frame.seq != one.place.seq:
            raise RecordDamaged(
                file, f"offset {one.place.offset}: record {one.place.seq} is not there", ASK
            )
        found.append(record_of(file, frame))
    return found
