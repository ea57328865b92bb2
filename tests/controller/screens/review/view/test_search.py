"""The newest rounds first, whatever is looked for: held against walking through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.index import Index, RecordQuery, find_rounds
from controller.screens.review.view import queries
from controller.screens.review.view.queries import ends, newest
from tests.support.audit.record.table import begun

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
    file = tmp_path_factory.mktemp("newest") / "index.db"
    with Index.open(place, file) as index:
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


@given(wanted=WANTED, limit=st.integers(1, 9), wider=st.sampled_from([2, 8]))
def test_all_that_is_wanted_comes_once_page_by_page(
    db: apsw.Connection, wanted: RecordQuery, limit: int, wider: int
) -> None:
    found: list[int] = []
    before: int | None = None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "WIDENING", wider)
        while True:
            page = newest(db, wanted, before, limit)
            found += [one.round for one in page.rounds]
            assert len(page.rounds) <= limit
            if page.before is None:
                break
            assert before is None or page.before < before
            before = page.before
    assert found == sorted(every(db, wanted), reverse=True)


def test_a_page_without_time_still_goes_on(db: apsw.Connection) -> None:
    """What is rare is found all the same, in more pages."""
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    wanted = RecordQuery(event="RoundVoided")
    found: list[int] = []
    before: int | None = None
    pages = 0
    while True:
        page = newest(db, wanted, before, 2, clock)
        found += [one.round for one in page.rounds]
        pages += 1
        if page.before is None:
            break
        assert before is None or page.before < before
        before = page.before
    assert found == sorted(every(db, wanted), reverse=True)
    assert pages > 5


def test_a_record_without_rounds_has_none(tmp_path: Path) -> None:
    begun(tmp_path / "record").close()
    with Index.open(tmp_path / "record") as index:
        index.catch_up()
        assert ends(index.db) == (1, 0)
        found = newest(index.db, RecordQuery())
        assert (found.rounds, found.before) == ((), None)
