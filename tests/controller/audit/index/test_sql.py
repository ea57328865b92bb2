"""Analysts ask an index in SQL, and can do nothing but ask."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from controller.audit.errors import IndexDamaged, IndexFileProblem, IndexOfOther, IndexOutdated
from controller.audit.index import Index, run_sql
from controller.audit.index.sql import MAX_BYTES
from controller.errors import UsageProblem
from tests.support.audit.tools.indexing import dealt, dump_of, written

FOREVER = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sql") / "record"
    written(place, dealt("sql", 15))
    with Index.open(place) as index:
        index.catch_up()
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
    db = apsw.Connection(str(tmp_path / "other.db"))
    db.execute("CREATE TABLE guests (name)")
    db.close()
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
    db = apsw.Connection(str(copy))
    db.pragma("user_version", 5)
    db.close()
    with pytest.raises(IndexOutdated, match="another version"):
        run_sql(copy, "SELECT count(*) FROM records")
