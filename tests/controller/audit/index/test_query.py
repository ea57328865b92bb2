"""What is looked for in an index is found, all of it and nothing else, page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import apsw
import pytest
from msgspec.structs import replace

from controller.audit.errors import IndexDamaged
from controller.audit.format.segments import segment_file, unpack
from controller.audit.index import (
    MAX_PAGE,
    Index,
    RecordQuery,
    find,
    find_rounds,
    query,
)
from controller.audit.index.query import IndexRow
from controller.errors import UsageProblem
from controller.rules.cards import NAMES
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.indexing import Dump, dump, with_its_clock_set

Holds: TypeAlias = Callable[["Seen"], bool]
_QUESTIONS: Final = 250


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with with_its_clock_set(tmp_path_factory.mktemp("query") / "record") as index:
        yield index


class Seen(NamedTuple):
    """A record, with all that stands of it in the index."""

    row: IndexRow
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
            IndexRow(*row[:14]),
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
    order = (
        *("seq", "utc", "day", "round", "kind", "role", "name", "seat", "event", "dealer"),
        *("cause", "segment", "offset", "length"),
    )
    assert IndexRow.__struct_fields__ == order
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


def _all_pages(db: apsw.Connection, wanted: RecordQuery, limit: int) -> list[IndexRow]:
    rows: list[IndexRow] = []
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


def test_a_question_is_answered_from_one_state_of_the_index(tmp_path: Path) -> None:
    """Whatever is caught up meanwhile; and afterwards nothing holds on to the old one."""
    place = tmp_path / "record"
    log = begun(place)
    with Index.open(place) as index, Index.open(place) as other:
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
    log.close()


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    place = tmp_path / "record"
    begun(place).close()
    with Index.open(place) as index:
        index.catch_up()
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
    common = sum(one.row.kind == "decision" for one in _seen(made))
    assert common > 500
    page = find(made.db, RecordQuery(kind="decision", event="TableOpened", until=1 << 60))
    assert list(page.rows) == rare
    assert page.next is None
