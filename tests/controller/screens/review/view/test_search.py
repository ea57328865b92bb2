"""The search for rounds: its form, its windows, and the queries of the index."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.index import Index, RecordQuery, find_rounds, parse_amount, parse_time
from controller.audit.text.records import PlainAmounts
from controller.errors import UsageProblem
from controller.procedure.prompts import MoneyFormat
from controller.rules.cards import NAMES
from controller.screens.review.view import queries
from controller.screens.review.view.queries import ends, newest
from controller.screens.review.view.rounds import FIELDS, Filters, filters_of, number_of
from tests.support.audit.record.table import begun
from tests.support.screens.looked_at import Browser

WANTED = st.builds(
    RecordQuery,
    rounds=st.none() | st.tuples(st.integers(1, 12), st.integers(12, 60)),
    seat=st.none() | st.integers(1, 8),
    card=st.none() | st.integers(0, 51),
    dealer=st.none() | st.sampled_from(["dealer", "dealer-2", "nobody"]),
    kind=st.none() | st.sampled_from(["decision", "refusal", "opened"]),
    event=st.none() | st.sampled_from(["CardDrawn", "RoundVoided", "PaymentCorrected"]),
    least=st.none() | st.integers(0, 5_000),
    problem=st.booleans(),
)


@pytest.fixture(scope="module")
def db(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    with Index.open(place, tmp_path_factory.mktemp("newest") / "index.db") as index:
        index.catch_up()
        yield index.db


def every(db: apsw.Connection, wanted: RecordQuery) -> list[int]:
    """All that is wanted, by walking forward."""
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        page = find_rounds(db, wanted, after, 1_000)
        found += [one.round for one in page.rounds]
        after = page.next
    return found


def all_pages(
    db: apsw.Connection,
    wanted: RecordQuery,
    limit: int,
    clock: Callable[[], float] = time.monotonic,
) -> list[list[int]]:
    """The rounds of each page, each before the one that the page before it names."""
    pages: list[list[int]] = []
    before: int | None = None
    while True:
        page = newest(db, wanted, before, limit, clock)
        pages.append([one.round for one in page.rounds])
        if page.before is None:
            return pages
        assert before is None or page.before < before
        before = page.before


@given(wanted=WANTED, limit=st.integers(1, 9), wider=st.sampled_from([2, 8]))
def test_all_that_is_wanted_comes_once_page_by_page(
    db: apsw.Connection, wanted: RecordQuery, limit: int, wider: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "WIDENING", wider)
        pages = all_pages(db, wanted, limit)
    assert all(len(page) <= limit for page in pages)
    assert [one for page in pages for one in page] == sorted(every(db, wanted), reverse=True)


def test_a_page_without_time_still_goes_on(db: apsw.Connection) -> None:
    """What is rare is found all the same, in more pages."""
    wanted = RecordQuery(event="RoundVoided")
    pages = all_pages(db, wanted, 2, count(1.0).__next__)
    assert [one for page in pages for one in page] == sorted(every(db, wanted), reverse=True)
    assert len(pages) > 5


def test_a_record_without_rounds_has_none(tmp_path: Path) -> None:
    begun(tmp_path / "record").close()
    with Index.open(tmp_path / "record") as index:
        index.catch_up()
        assert ends(index.db) == (1, 0)
        found = newest(index.db, RecordQuery())
        assert (found.rounds, found.before) == ((), None)


DOLLARS = MoneyFormat("$", 2)
EIGHT = 1_800_000_000_000_000  # 2027-01-15 08:00:00


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("from", "2027-01-15T08:00:00", {"since": EIGHT}),
        ("from", "2027-01-15 08:00", {"since": EIGHT}),
        ("from", "2027-01-15T08:00:00.000001Z", {"since": EIGHT + 1}),
        ("to", "2027-01-15T08:00:00", {"until": EIGHT + 999_999}),
        ("to", "2027-01-15T08:00", {"until": EIGHT + 59_999_999}),
        ("to", "2027-01-15T08:00:00.25", {"until": EIGHT + 259_999}),
        ("to", "2027-01-15T08:00:00.000001", {"until": EIGHT + 1}),
        ("to", "2027-01-14", {"until": EIGHT - 8 * 3_600_000_000 - 1}),
        ("round", "31", {"rounds": (31, 31)}),
        ("round", "31-40", {"rounds": (31, 40)}),
        ("seat", "3", {"seat": 3}),
        ("card", "TH", {"card": NAMES.index("TH")}),
        ("card", "10h", {"card": NAMES.index("TH")}),
        ("card", "ad", {"card": NAMES.index("AD")}),
        ("dealer", "Ann", {"dealer": "Ann"}),
        ("person", "Flo", {"person": "Flo"}),
        ("irregularity", "misdeal", {"irregularity": "misdeal"}),
        ("event", "CardDrawn", {"event": "CardDrawn"}),
        ("kind", "refusal", {"kind": "refusal"}),
        ("least", "$12.50", {"least": 1250}),
        ("most", "1,250", {"most": 125_000}),
        ("problems", "yes", {"problem": True}),
    ],
)
def test_what_is_asked_for(field: str, text: str, found: dict[str, Any]) -> None:
    assert filters_of({field: text}, DOLLARS).wanted == RecordQuery(**found)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("from", "yesterday"),
        ("from", "2027-13-01"),
        ("from", "2027-02-30"),
        ("from", "2027-01-15T25:00"),
        ("to", "2027-01-15T08"),
        ("round", "0"),
        ("round", "40-31"),
        ("round", "-1"),
        ("round", "9" * 40),
        ("seat", "x"),
        ("seat", "0"),
        ("seat", "\u0663"),
        ("seat", "1001"),
        ("card", "1X"),
        ("card", "TTTT"),
        ("irregularity", "nothing"),
        ("event", "Go"),
        ("kind", "Decision"),
        ("least", "12.505"),
        ("least", "1,25"),
        ("least", "$"),
        ("most", "9" * 30),
        ("problems", "no"),
    ],
)
def test_what_cannot_be_asked_for_is_named(field: str, text: str) -> None:
    with pytest.raises(UsageProblem) as told:
        filters_of({field: text}, DOLLARS)
    assert told.value.where == field
    assert told.value.allowed


@pytest.mark.parametrize(
    ("low", "high"),
    [({"from": "2027-01-16"}, {"to": "2027-01-14"}), ({"least": "5"}, {"most": "4"})],
)
def test_from_comes_before_to(low: dict[str, str], high: dict[str, str]) -> None:
    with pytest.raises(UsageProblem):
        filters_of({**low, **high}, DOLLARS)


@given(st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=60), max_size=4))
def test_whatever_is_typed_is_taken_or_refused_in_words(fields: dict[str, str]) -> None:
    found: Filters | UsageProblem
    try:
        found = filters_of(fields, DOLLARS)
    except UsageProblem as problem:
        found = problem
    if isinstance(found, Filters):
        assert filters_of(found.fields, DOLLARS) == found
    else:
        assert found.what
        assert found.allowed


@given(st.integers(-(10**14), 10**14), st.sampled_from([MoneyFormat(), MoneyFormat("CHF", 2)]))
def test_an_amount_is_read_as_it_is_written(amount: int, money: MoneyFormat) -> None:
    assert parse_amount("least", money.amount(amount), money) == amount


def test_a_game_without_a_currency_has_whole_amounts() -> None:
    assert parse_amount("least", "1250", PlainAmounts()) == 1250
    with pytest.raises(UsageProblem):
        parse_amount("least", "12.50", PlainAmounts())


@given(st.integers(0, 253_402_300_799))
def test_a_day_or_second_ends_where_the_next_begins(seconds: int) -> None:
    moment = datetime.fromtimestamp(seconds, UTC)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}".zfill(19)
    assert parse_time("from", text) == seconds * 1_000_000
    assert parse_time("to", text, end=True) == seconds * 1_000_000 + 999_999


def test_numbers_have_an_end() -> None:
    assert number_of("seat", "7", 7) == 7
    with pytest.raises(UsageProblem, match="1 to 7"):
        number_of("seat", "8", 7)


WRONG = (
    "/rounds?seat=x",
    "/rounds?x=1",
    "/rounds?before=0",
    "/rounds?before=99999999999999999999",
    "/rounds?seat=1&seat=2",
    "/rounds?seat=%ff",
    "/rounds?dealer=%00",
    "/rounds?dealer=%0a",
    f"/rounds?dealer={'x' * 600}",
    f"/rounds?{'&'.join(f'a{n}=1' for n in range(60))}",
    f"/rounds?dealer={'x' * 20_000}",
    "/rounds?from=2027-01-16&to=2027-01-14",
    "/rounds?least=2&most=1",
    "/rounds/0",
    "/rounds/x",
    "/rounds/-1",
    "/rounds/9999999",
    "/rounds/99999999999999999999999",
    "/rounds/3?from=x",
    "/rounds/3?from=999999",
    "/rounds/3?nothing=1",
    "/rounds/3/replay?at=x",
    "/rounds/3/replay.json?at=1",
    "/rounds/9999999/replay",
    "/rounds/9999999/replay.json",
    "/problems?what=nonsense",
    "/problems?before=x",
    "/records?from=0",
    "/records?from=99999999",
    "/records/0",
    "/records/x",
    "/records/99999999",
    "/report?from=x",
    "/report?from=2027-01-16&to=2027-01-14",
    "/export?round=x",
    "/export/nothing",
    "/export/nothing/case.zip",
    "/live/stream?after=x",
    "/live/stream?after=99999999",
    "/about?x=1",
    "/nothing",
    "/rounds/3/nothing",
    "/%2e%2e/etc/passwd",
)


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_address_is_told_what_is_wrong(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    assert answer.status in (400, 404, 413), answer.words
    assert 'role="alert"' in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("path", "field", "typed", "reason"),
    [
        ("/report?from=noon&to=2027-01-16", "from", "noon", "is no time"),
        (
            "/report?from=2027-01-16&to=2027-01-14",
            "to",
            "2027-01-14",
            "is before 2027-01-16 00:00:00",
        ),
        ("/records?from=x", "from", "x", "is no number"),
        ("/records?from=99999999", "from", "99999999", "there is no record 99999999"),
    ],
)
def test_a_form_stays_with_what_was_typed_and_says_what_is_wrong(
    browser: Browser, path: str, field: str, typed: str, reason: str
) -> None:
    answer = browser.get(path)
    assert answer.status == 400
    marked = re.search(
        rf'<input name="{field}" value="{typed}"[^>]*aria-invalid="true"', answer.text
    )
    assert marked
    assert reason in answer.words
    assert answer.text.count('type="submit"') == 2  # the form's, and that to leave


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("seat", "x", "is no number"),
        ("from", "noon", "is no time"),
        ("card", "ZZ", "is not a card"),
        ("irregularity", "x", "is not known"),
        ("problems", "no", "is not known"),
        ("to", "2000-01-01", "is before"),
        ("most", "0", "is less than"),
    ],
)
def test_a_wrong_field_is_marked_and_the_others_stay(
    browser: Browser, field: str, text: str, reason: str
) -> None:
    others = {"dealer": "Ann", "round": "2-9", "from": "2027-01-15", "least": "5"}
    fields = {**others, field: text}
    answer = browser.get(f"/rounds?{urlencode(fields)}")
    assert answer.status == 400
    (marked,) = re.findall(r"<(?:input|select)[^>]*aria-invalid[^>]*>", answer.text)
    assert f'name="{field}"' in marked
    (said,) = re.findall(r'<span class="wrong" id="wrong" role="alert">(.*?)</span>', answer.text)
    assert reason in said
    for name, typed in fields.items():
        if name not in ("irregularity", "problems"):
            assert f'name="{name}" value="{typed}"' in answer.text
    assert "<table" not in answer.text  # nothing of the record, so nobody has looked


def test_what_was_typed_comes_back_as_text(browser: Browser) -> None:
    for path in ("/rounds?dealer=%3Cscript%3E", "/problems?what=%3Cscript%3E", "/rounds/%3Cb%3E"):
        assert "<script>" not in browser.get(path).text
        assert "<b>" not in browser.get(path).text
    assert "&lt;script&gt;" in browser.get("/rounds?dealer=%3Cscript%3E").text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"round": "x"},
        {"round": "3", "day": "2027-01-15"},
        {"day": "yesterday"},
        {"day": "2027-02-30"},
        {"all": "no"},
        {"all": "yes", "format": "pdf"},
        {"all": "yes", "reason": "x" * 300},
        {"all": "yes", "x": "1"},
        {"round": "99999", "format": "csv"},
        {"round": "99999"},
        {"day": "1999-01-01", "format": "jsonl"},
    ],
)
def test_a_wrong_export_makes_nothing(browser: Browser, fields: dict[str, str]) -> None:
    answer = browser.post("/export", fields)
    assert answer.status in (400, 404), answer.words
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_ways_of_asking_are_refused(browser: Browser, method: str) -> None:
    assert browser.send(method, "/rounds").status == 405
