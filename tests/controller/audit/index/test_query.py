"""What is looked for in an index is found, all of it and nothing else, page by page."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import apsw
import pytest
from msgspec.structs import replace

from controller.audit.errors import IndexDamaged, IndexFileProblem, IndexOfOther, IndexOutdated
from controller.audit.format.segments import segment_file, unpack
from controller.audit.index import (
    MAX_PAGE,
    Index,
    RecordQuery,
    find,
    find_rounds,
    query,
    run_sql,
)
from controller.audit.index.sql import MAX_BYTES
from controller.errors import UsageProblem
from controller.rules.cards import NAMES
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.indexing import (
    Dump,
    dealt,
    dump,
    dump_of,
    indexed,
    with_its_clock_set,
    written,
)

_QUESTIONS: Final = 250


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with with_its_clock_set(tmp_path_factory.mktemp("query") / "record") as index:
        yield index


class Seen(NamedTuple):
    """A record, with all that stands of it in the index."""

    row: query.IndexRow
    cards: set[tuple[int, int]]
    seats: set[int]
    amounts: set[tuple[int, int]]
    irregularities: set[str]
    people: set[str]
    problem: bool
    in_round: int


@cache
def _seen(index: Index) -> tuple[Seen, ...]:
    said = dump(index.db)
    spans = [(row[1], row[2], row[0]) for row in said["rounds"]]
    return tuple(
        Seen(
            query.IndexRow(*row[:14]),
            {(card, seat) for card, at, seat, *_ in said["cards"] if at == row[0]},
            {seat for seat, at in said["seats"] if at == row[0]},
            {(each[5], each[3]) for each in said["amounts"] if each[0] == row[0]},
            {what for what, at, *_ in said["irregularities"] if at == row[0]},
            {name for name, at, _ in said["people"] if at == row[0]},
            any(at == row[0] for at, _ in said["problems"]),
            next((number for first, last, number in spans if first <= row[0] <= last), 0),
        )
        for row in _as_rows(said)
    )


def _as_rows(said: Dump) -> list[tuple[Any, ...]]:
    """In the order in which a page has them."""
    assert query.IndexRow.__struct_fields__ == (
        *("seq", "utc", "day", "round", "kind", "role", "name", "seat", "event", "dealer"),
        *("cause", "segment", "offset", "length"),
    )
    return said["records"]


def _fits(one: Seen, wanted: RecordQuery) -> bool:
    w, row = wanted, one.row
    low, high = w.rounds or (0, 1 << 60)
    seat = w.seat
    least = -(1 << 63) if w.least is None else w.least
    most = 1 << 60 if w.most is None else w.most
    in_amounts = any(
        least <= amount <= most and (seat is None or at == seat) for amount, at in one.amounts
    )
    in_cards = any(card == w.card and (seat is None or at == seat) for card, at in one.cards)
    return all(
        (
            w.since is None or row.utc >= w.since,
            w.until is None or row.utc <= w.until,
            w.rounds is None or low <= one.in_round <= high,
            w.card is None or in_cards,
            (w.least is None and w.most is None) or in_amounts,
            seat is None or seat in one.seats,
            w.dealer is None or row.dealer == w.dealer,
            w.kind is None or row.kind == w.kind,
            w.event is None or row.event == w.event,
            w.irregularity is None or w.irregularity in one.irregularities,
            w.person is None or w.person in one.people,
            not w.problem or one.problem,
        )
    )


def _some(rng: Random, seen: tuple[Seen, ...]) -> RecordQuery:
    """A few things that stand in some record, often the same one."""
    one = rng.choice([each for each in seen if each.seats] if rng.random() < 0.7 else seen)
    other = one if rng.random() < 0.6 else rng.choice(seen)
    row = other.row
    amount = rng.choice(sorted(one.amounts or {(100, 0)}))[0]
    first = max(one.in_round, 1)
    values: dict[str, Any] = {
        "since": row.utc - rng.choice((0, 1, 10**6, 10**9)),
        "until": row.utc + rng.choice((0, 1, 10**6, 10**9)),
        "rounds": (first, first + rng.choice((0, 1, 20))),
        "seat": rng.choice(sorted(one.seats or {1})),
        "card": rng.choice(sorted(other.cards or {(13, 0)}))[0],
        "dealer": row.dealer or "nobody",
        "kind": row.kind,
        "event": row.event or "Hit",
        "least": amount - rng.choice((0, 5, 1000)),
        "most": amount + rng.choice((0, 5, 1000)),
        "irregularity": rng.choice(sorted(one.irregularities or {"misdeal"})),
        "person": rng.choice(sorted(other.people or {"floor-2"})),
        "problem": True,
    }
    names = rng.sample(sorted(values), rng.choice((0, 1, 1, 2, 2, 3, 4)))
    return RecordQuery(**{name: values[name] for name in names})


def _all_pages(db: apsw.Connection, wanted: RecordQuery, limit: int) -> list[query.IndexRow]:
    rows: list[query.IndexRow] = []
    after: int | None = 0
    while after is not None:
        page = find(db, wanted, after, limit)
        assert len(page.rows) <= limit
        assert page.next is None or page.next > after
        assert all(after < row.seq <= (page.next or row.seq) for row in page.rows)
        rows += page.rows
        after = page.next
    return rows


@pytest.mark.parametrize("small", [False, True])
def test_what_is_found_is_what_there_is(
    made: Index, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """Also where a page gives up early and goes on, and where amounts are too many to be sorted."""
    if small:
        monkeypatch.setattr(query, "CHUNK", 7)
        monkeypatch.setattr(query, "SCAN_CHUNK", 90)
        monkeypatch.setattr(query, "MAX_STEPS", 3)
    seen = _seen(made)
    rng = Random(f"questions {small}")
    found_some = 0
    for _ in range(_QUESTIONS):
        wanted = _some(rng, seen)
        right = [one.row for one in seen if _fits(one, wanted)]
        limit = rng.choice((1, 3, 10, 200, MAX_PAGE))
        if len(right) > 40 * limit:
            limit = 200
        assert _all_pages(made.db, wanted, limit) == right, wanted
        found_some += bool(right)
    assert _QUESTIONS // 4 < found_some < _QUESTIONS


@pytest.mark.parametrize("small", [False, True])
def test_rounds_are_those_with_such_a_record(
    made: Index, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    if small:
        monkeypatch.setattr(query, "CHUNK", 7)
        monkeypatch.setattr(query, "MAX_STEPS", 3)
    seen = _seen(made)
    rng = Random(f"rounds {small}")
    every = {row[0]: row for row in dump(made.db)["rounds"]}
    for _ in range(_QUESTIONS // 4):
        wanted = _some(rng, seen)
        right = sorted({one.in_round for one in seen if _fits(one, wanted)} - {0})
        numbers: list[int] = []
        after: int | None = 0
        while after is not None:
            page = find_rounds(made.db, wanted, after, rng.choice((1, 5, 100)))
            numbers += [one.round for one in page.rounds]
            for one in page.rounds:
                assert tuple(getattr(one, n) for n in one.__struct_fields__) == every[one.round]
            assert page.next is None or page.next > after
            after = page.next
        assert numbers == right, wanted


def test_every_row_says_where_its_record_lies(made: Index) -> None:
    for row in find(made.db, RecordQuery(event="CardDrawn"), limit=50).rows:
        place = row.place
        frame = unpack(segment_file(made.record, place.segment).read_bytes(), place.offset)
        assert frame is not None
        assert (frame.seq, len(frame.data)) == (place.seq, row.length) == (row.seq, row.length)


def test_a_page_goes_on_where_the_last_one_ended(made: Index) -> None:
    first = find(made.db, RecordQuery(), limit=10)
    second = find(made.db, RecordQuery(), first.next or 0, limit=10)
    assert [row.seq for row in (*first.rows, *second.rows)] == list(range(1, 21))
    last = made.position.seq
    assert find(made.db, RecordQuery(), last - 3, limit=3).next is None
    assert find(made.db, RecordQuery(), last - 3, limit=2).next == last - 1
    assert find(made.db, RecordQuery(), last, limit=2).rows == ()


def test_what_nobody_ever_wrote_is_nowhere(made: Index) -> None:
    for wanted in (
        RecordQuery(dealer="Zoe"),
        RecordQuery(person="Zoe"),
        RecordQuery(event="CardFlipped"),
        RecordQuery(rounds=(10_000, 20_000)),
        RecordQuery(irregularity="hole_mismatch"),
        RecordQuery(least=1 << 50),
        RecordQuery(until=0),
        RecordQuery(seat=99),
    ):
        assert find(made.db, wanted).rows == ()
        assert find(made.db, wanted).next is None
        assert find_rounds(made.db, wanted).rounds == ()


def test_words_are_values_and_no_sql(made: Index) -> None:
    for text in ("' OR 1=1 --", '"', "x'; DROP TABLE words; --", ":person", "?"):
        assert find(made.db, RecordQuery(person=text)).rows == ()
        assert find(made.db, RecordQuery(dealer=text, event=text)).rows == ()
    assert len(find(made.db, RecordQuery(), limit=5).rows) == 5


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (RecordQuery(card=52), "card: 52 is no card; allowed: 0 to 51"),
        (RecordQuery(card=-1), "-1 is no card"),
        (RecordQuery(seat=0), "there is no seat 0"),
        (RecordQuery(rounds=(0, 3)), "no rounds are 0 to 3"),
        (RecordQuery(rounds=(4, 3)), "no rounds are 4 to 3"),
        (RecordQuery(since=5, until=4), "4 is less than since, 5"),
        (RecordQuery(least=5, most=4), "4 is less than least, 5"),
        (RecordQuery(most=1 << 70), "is out of range"),
        (replace(RecordQuery(), kind="decisions"), "no record is a 'decisions'"),
        (RecordQuery(irregularity="rain"), "'rain' is no irregularity"),
    ],
)
def test_what_no_record_can_be_is_told(made: Index, wanted: RecordQuery, words: str) -> None:
    for asks in (find, find_rounds):
        with pytest.raises(UsageProblem, match=re.escape(words)):
            asks(made.db, wanted)


@pytest.mark.parametrize(("after", "limit"), [(-1, 5), (1 << 62, 5), (0, 0), (0, MAX_PAGE + 1)])
def test_pages_have_a_size(made: Index, after: int, limit: int) -> None:
    for asks in (find, find_rounds):
        with pytest.raises(UsageProblem, match=r"after|limit"):
            asks(made.db, RecordQuery(), after, limit)


def test_a_question_is_answered_from_one_state_of_the_index(place: Path) -> None:
    """Whatever is caught up meanwhile; and afterwards nothing holds on to the old one."""
    with closing(begun(place)) as log, Index.open(place) as index, Index.open(place) as other:
        index.catch_up()
        steps: list[int] = []

        def more(cursor: apsw.Cursor, sql: str, _: object) -> bool:
            if sql.startswith("SELECT seq FROM goes"):
                steps.append(index.position.seq)
                log.write([note("more")])
                other.catch_up()
            return True

        index.db.exec_trace = more
        assert len(find(index.db, RecordQuery()).rows) == 4
        index.db.exec_trace = None
        assert steps
        assert len(find(index.db, RecordQuery()).rows) == 5
        assert not index.db.in_transaction


def test_a_damaged_index_is_named(place: Path) -> None:
    begun(place).close()
    with indexed(place) as index:
        index.db.execute("DROP VIEW cards; DROP TABLE raw_cards")
        with pytest.raises(IndexDamaged, match=r"no such table: raw_cards.*rebuild-index"):
            find(index.db, RecordQuery(card=NAMES.index("AD")))
        assert not index.db.in_transaction


def test_a_card_at_a_seat_is_found_where_it_was_drawn(made: Index) -> None:
    drawn = find(made.db, RecordQuery(event="CardDrawn", seat=1), limit=500).rows
    assert drawn
    for row in drawn:
        cards = made.db.execute("SELECT card, seat, how FROM cards WHERE seq = ?", (row.seq,))
        assert [(seat, how) for _, seat, how in cards if how == "drawn"] == [(1, "drawn")]


def test_it_looks_along_the_sparsest_list(made: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rare is found at once, whatever is common beside it."""
    monkeypatch.setattr(query, "CHUNK", 20)
    monkeypatch.setattr(query, "MAX_STEPS", 1)
    opened = [one.row for one in _seen(made) if one.row.event == "TableOpened"]
    rare = [row for row in opened if row.kind == "decision"]
    assert 0 < len(rare) <= len(opened) < 20
    assert sum(one.row.kind == "decision" for one in _seen(made)) > 500
    page = find(made.db, RecordQuery(kind="decision", event="TableOpened", until=1 << 60))
    assert list(page.rows) == rare
    assert page.next is None


# --- query plans: everything is looked up, no table is scanned --------------------------------


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
                assert not [step for step in plan if _SLOW.search(step)], (sql, plan)
                looked += bool(plan)
            assert looked


def test_lists_are_walked_in_their_order(made: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted are rare amounts only, and what a page has already found."""
    monkeypatch.setattr(query, "CHUNK", 2)
    for name in RecordQuery.__struct_fields__:
        terms = query.terms_of(made.db, RecordQuery(**{name: getattr(_ALL_OF_THEM, name)}))
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


# --- Analysts ask an index in SQL, and can do nothing but ask ---------------------------------


FOREVER = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sql") / "record"
    written(place, dealt("sql", 15))
    with indexed(place) as index:
        return index.file


def test_it_answers_in_words(file: Path) -> None:
    answer = run_sql(
        file, "SELECT kind, count(*) AS how_many FROM records GROUP BY kind ORDER BY kind"
    )
    assert answer.columns == ("kind", "how_many")
    records = dump_of(file)["records"]
    kinds = sorted({row[4] for row in records})
    assert answer.rows == tuple((k, sum(row[4] == k for row in records)) for k in kinds)
    assert not answer.more


def test_values_are_bound(file: Path) -> None:
    one = run_sql(
        file, "SELECT face, how FROM cards WHERE seat = ? AND how = ? LIMIT 1", (1, "drawn")
    )
    assert one.rows[0][1] == "drawn"
    named = run_sql(file, "SELECT :name AS name", {"name": "O'Neil"})
    assert (named.columns, named.rows) == (("name",), (("O'Neil",),))


def test_rows_are_bounded(file: Path) -> None:
    count = len(dump_of(file)["records"])
    some = run_sql(file, "SELECT seq FROM records", rows=10)
    assert (len(some.rows), some.more) == (10, True)
    every = run_sql(file, "SELECT seq FROM records", rows=count)
    assert (len(every.rows), every.more) == (count, False)


def test_time_is_bounded(file: Path) -> None:
    with pytest.raises(UsageProblem, match=r"is not answered within 0\.05 s; allowed: a narrower"):
        run_sql(file, FOREVER, seconds=0.05)
    with pytest.raises(UsageProblem, match="is not answered within"):
        run_sql(file, f"SELECT 1 WHERE 1 = ({FOREVER})", seconds=0.01)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM raw_records",
        "INSERT INTO words VALUES (99999, 'x')",
        "UPDATE goes SET seq = 0",
        "DROP TABLE raw_cards",
        "CREATE TABLE mine (x)",
        "CREATE TEMP TABLE mine (x)",
        "CREATE VIEW mine AS SELECT 1",
        "ATTACH ':memory:' AS other",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "SELECT * FROM pragma_table_info('words')",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT here",
        "REINDEX",
        "ANALYZE",
        "WITH x AS (SELECT 1) DELETE FROM words",
    ],
)
def test_it_changes_nothing(
    file: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = dump_of(file)
    with pytest.raises(UsageProblem, match="does more than reading; allowed: a SELECT"):
        run_sql(file, sql)
    assert dump_of(file) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM guests", "no such table: guests"),
        ("SELECT shoe_size FROM records", "no such column: shoe_size"),
        ("SELECT ?", "Incorrect number of bindings"),
        ("SELECT abs(-9223372036854775807 - 1)", "integer overflow"),
        ("SELECT load_extension('x')", "not authorized|no such function"),
        (f"SELECT zeroblob({MAX_BYTES + 1})", "too big"),
        ("SELECT " + "1," * MAX_BYTES + "1", "too big|too large"),
        ("", "asks nothing"),
        ("-- nothing", "asks nothing"),
        (";", "asks nothing"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("SELECT 1; DELETE FROM words", "does more than reading"),
    ],
)
def test_what_is_no_question_is_told(file: Path, sql: str, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        run_sql(file, sql)


def test_one_statement_may_have_a_comment_behind_it(file: Path) -> None:
    for sql in ("SELECT 1;", " SELECT 1 ;; ", "SELECT 1 -- one", "SELECT 1; -- one"):
        assert run_sql(file, sql).rows == ((1,),)


def test_bounds_have_bounds(file: Path) -> None:
    for rows, seconds in ((0, 1.0), (1_000_000, 1.0), (1, 0.0), (1, 10_000.0)):
        with pytest.raises(UsageProblem, match=r"^(rows|seconds): "):
            run_sql(file, "SELECT 1", rows=rows, seconds=seconds)


def test_it_does_not_wait_for_who_writes(file: Path) -> None:
    with Index.open(file.parent, file) as index:
        index.db.execute("BEGIN IMMEDIATE")
        index.db.execute("DELETE FROM raw_cards")
        assert run_sql(file, "SELECT count(*) > 0 FROM cards").rows == ((1,),)
        index.db.execute("ROLLBACK")


def test_only_an_index_is_asked(tmp_path: Path) -> None:
    with pytest.raises(IndexFileProblem, match=r"unable to open.*--index FILE"):
        run_sql(tmp_path / "nowhere.db", "SELECT 1")
    (tmp_path / "text.db").write_bytes(b"words " * 1000)
    with pytest.raises(IndexOfOther, match="something else than the index"):
        run_sql(tmp_path / "text.db", "SELECT 1")
    with closing(apsw.Connection(str(tmp_path / "other.db"))) as db:
        db.execute("CREATE TABLE guests (name)")
    with pytest.raises(IndexOfOther, match="something else than the index"):
        run_sql(tmp_path / "other.db", "SELECT name FROM guests")


def test_an_older_or_damaged_index_is_named(tmp_path: Path, file: Path) -> None:
    copy = tmp_path / "copy.db"
    good = file.read_bytes()
    bad = bytearray(good)
    bad[100:2000] = bytes(1900)
    copy.write_bytes(bad)
    with pytest.raises(IndexDamaged, match=r"malformed|not a database"):
        run_sql(copy, "SELECT count(*) FROM records")
    copy.write_bytes(good)
    with closing(apsw.Connection(str(copy))) as db:
        db.pragma("user_version", 5)
    with pytest.raises(IndexOutdated, match="another version"):
        run_sql(copy, "SELECT count(*) FROM records")
