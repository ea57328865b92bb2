"""SQL queries of the index. Each uses a key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import apsw
from msgspec import Struct

from controller.audit.format.records import RecordPosition
from controller.audit.index import RoundRow, sqlite_errors
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
    names = ", ".join(SettledBet.__struct_fields__)
    asked = f"SELECT {names} FROM bets WHERE seq BETWEEN ? AND ? ORDER BY seq, nth"
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
