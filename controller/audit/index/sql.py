"""SQL queries of analysts to an index: one read-only statement, with limits for everything.

    answer = run_sql(file, "SELECT dealer, count(*) FROM rounds GROUP BY dealer")

The views are those of `schema`: records, cards, amounts, bets, irregularities, problems, people,
seats, shifts, rounds, segments.
"""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Final

import apsw
from msgspec import Struct

from controller.audit.index.index import open_readonly, sqlite_errors
from controller.errors import UsageProblem

MAX_ROWS: Final = 100_000
MAX_SECONDS: Final = 600.0
MAX_BYTES: Final = 100_000
"""Maximum of bytes of a value, and of the statement."""
_STEPS: Final = 10_000
"""SQLite's steps between checks of the timeout."""
_READS: Final = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}
)
_NOT_SQL: Final = (
    apsw.SQLError,
    apsw.BindingsError,
    apsw.MismatchError,
    apsw.RangeError,
    apsw.TooBigError,
)


class SqlAnswer(Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[apsw.SQLiteValue, ...], ...]
    more: bool
    """Whether there were more rows than requested."""


def run_sql(
    file: Path,
    sql: str,
    values: apsw.Bindings = (),
    *,
    rows: int = 1_000,
    seconds: float = 5.0,
) -> SqlAnswer:
    """Run one read-only statement, with limits for rows and seconds. Raises UsageProblem and
    IndexProblem."""
    if not 1 <= rows <= MAX_ROWS:
        raise UsageProblem("rows", f"{rows} rows", f"1 to {MAX_ROWS}")
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageProblem("seconds", f"{seconds:g} s", f"up to {MAX_SECONDS:g}")
    db = open_readonly(file)
    try:
        with sqlite_errors(file):
            # Read-only from here on, whatever the statement is.
            db.authorizer = _reads_only
            db.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_BYTES)
            db.limit(apsw.SQLITE_LIMIT_SQL_LENGTH, MAX_BYTES)
            return _answer(db, sql, values, rows, seconds)
    finally:
        db.close()


def _reads_only(
    operation: int, one: str | None, two: str | None, database: str | None, inner: str | None
) -> int:
    return apsw.SQLITE_OK if operation in _READS else apsw.SQLITE_DENY


def _answer(
    db: apsw.Connection, sql: str, values: apsw.Bindings, most: int, seconds: float
) -> SqlAnswer:
    columns: list[str] = []

    def begins(cursor: apsw.Cursor, statement: str, _: apsw.Bindings | None) -> bool:
        described = cursor.get_description()
        if columns and described:
            raise UsageProblem("sql", "holds more than one statement", "one")
        columns.extend(column[0] for column in described)
        return True

    deadline = time.monotonic() + seconds
    db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    cursor = db.cursor()
    cursor.exec_trace = begins
    try:
        found = list(islice(cursor.execute(sql, values), most + 1))
    except apsw.InterruptError:
        raise UsageProblem(
            "sql", f"is not answered within {seconds:g} s", "a narrower question, or more seconds"
        ) from None
    except apsw.AuthError:
        raise UsageProblem("sql", "does more than reading", "a SELECT") from None
    except _NOT_SQL as problem:
        raise UsageProblem("sql", str(problem), "a SELECT from the views of the index") from None
    finally:
        cursor.close(True)
    if not columns:
        raise UsageProblem("sql", "asks nothing", "a SELECT from the views of the index")
    return SqlAnswer(tuple(columns), tuple(found[:most]), len(found) > most)
