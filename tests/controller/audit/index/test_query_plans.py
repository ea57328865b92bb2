"""How SQLite goes about the questions to an index: all is looked up, and nothing passed through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, Final

import apsw
import pytest

from controller.audit.index import Index, RecordQuery, find, find_rounds, query
from tests.support.audit.tools.indexing import with_its_clock_set


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with with_its_clock_set(tmp_path_factory.mktemp("plans") / "record") as index:
        yield index


_SLOW: Final = re.compile(r"SCAN (?!\(subquery|goes$|s$)|AUTOMATIC")
"""A whole table is passed through, but for that of one row, and the spans, which are few; or one
is made that stands on such a pass."""
_ALL_OF_THEM: Final = RecordQuery(
    since=1,
    until=1 << 60,
    rounds=(1, 1 << 40),
    seat=1,
    card=13,
    dealer="dealer",
    kind="decision",
    event="CardDrawn",
    least=1,
    most=1 << 50,
    irregularity="late_wager",
    person="floor",
    problem=True,
)


def _plans(db: apsw.Connection, asks: Callable[[], object]) -> Iterator[tuple[str, list[str]]]:
    """Each statement of a question, and how SQLite goes about it."""
    asked: list[tuple[str, Any]] = []

    def listen(cursor: apsw.Cursor, sql: str, values: Any) -> bool:
        asked.append((sql, values))
        return True

    db.exec_trace = listen
    asks()
    db.exec_trace = None
    for sql, values in asked:
        if sql.startswith("SELECT"):
            plan = db.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            yield sql, [row[3] for row in plan]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", [*RecordQuery.__struct_fields__, "nothing"])
def test_no_question_passes_through_a_whole_table(
    made: Index, monkeypatch: pytest.MonkeyPatch, name: str, few: bool
) -> None:
    """An index of a million rounds answers as quickly as a small one: all is looked up."""
    if not few:
        monkeypatch.setattr(query, "CHUNK", 2)
    value = getattr(_ALL_OF_THEM, name, None)
    for wanted in (RecordQuery(**({} if value is None else {name: value})), _ALL_OF_THEM):
        for asks in (find, find_rounds):
            looked = 0
            for sql, plan in _plans(made.db, partial(asks, made.db, wanted, 5)):
                bad = [step for step in plan if _SLOW.search(step)]
                assert not bad, (sql, plan)
                looked += bool(plan)
            assert looked


def test_lists_are_walked_in_their_order(made: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted are rare amounts only, and what a page has already found."""
    monkeypatch.setattr(query, "CHUNK", 2)
    for name in RecordQuery.__struct_fields__:
        wanted = RecordQuery(**{name: getattr(_ALL_OF_THEM, name)})
        terms = query.terms_of(made.db, wanted)
        assert terms is not None
        for term in terms.terms:
            values = {**term.values, "after": 5, "upto": 1_000_000}
            for sql in (term.walk, term.reach):
                plan = [row[3] for row in made.db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
                assert not [step for step in plan if "TEMP B-TREE" in step], (name, sql, plan)


@pytest.mark.parametrize("few", [False, True])
def test_along_whichever_list_the_others_are_looked_up(
    made: Index, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    if not few:
        monkeypatch.setattr(query, "CHUNK", 2)
    names = RecordQuery.__struct_fields__
    find(made.db, RecordQuery())  # from here on the connection is as a question wants it
    for pair in combinations(names, 2):
        wanted = RecordQuery(**{name: getattr(_ALL_OF_THEM, name) for name in pair})
        terms = query.terms_of(made.db, wanted)
        assert terms is not None
        for term in terms.terms:
            values = {name: value for each in terms.terms for name, value in each.values.items()}
            asked = query.statement(terms, term, "r.utc")
            at = {**values, "after": 5, "upto": 1_000_000, "limit": 10}
            plan = [row[3] for row in made.db.execute(f"EXPLAIN QUERY PLAN {asked}", at)]
            assert not [step for step in plan if _SLOW.search(step)], (pair, asked, plan)
