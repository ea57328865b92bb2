"""Cases that wait to be fetched, and the one that is being made when the review ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from controller.audit.errors import CannotWrite
from controller.audit.export import SealedCase
from controller.audit.read.lookup import Selection
from controller.screens.review.source import FileSource
from controller.screens.review.source.context import MAX_CASES, CaseStore

PICKS = (Selection(), Selection(28, 29))


@pytest.mark.parametrize("pick", PICKS, ids=str)
def test_an_export_ends_at_the_next_segment_and_leaves_nothing(
    pick: Selection, place: Path, tmp_path: Path
) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    told: list[int] = []

    def export(out: Path, tell: Callable[[int], None]) -> SealedCase:
        def also(number: int) -> None:
            told.append(number)
            if len(told) == 2:
                cases.end()
            tell(number)

        return source.export(out, pick, "Eve", "", also)

    with pytest.raises(CannotWrite, match="the review has ended"):
        cases.make("x.zip", "Eve", str(pick), export)
    assert told == [1, 2]  # also where what is picked stands behind them
    with pytest.raises(CannotWrite, match="the review has ended"):
        cases.make("x.zip", "Eve", str(pick), export)
    assert len(told) == 2
    assert list(tmp_path.iterdir()) == []


def test_nobody_waits_for_the_one_that_is_being_made(place: Path, tmp_path: Path) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    begun, goes_on = Event(), Event()

    def export(out: Path, tell: Callable[[int], None]) -> SealedCase:
        return source.export(out, Selection(1, 1), "Eve", "", tell)

    def hangs(out: Path, tell: Callable[[int], None]) -> SealedCase:
        begun.set()
        assert goes_on.wait(60)
        return export(out, lambda number: None)

    first = cases.make("x.zip", "Eve", "round 1", export)
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(cases.make, "y.zip", "Eve", "round 1", hangs)
        assert begun.wait(60)
        assert cases.find(first.id, "Eve") is first
        closing = ThreadPoolExecutor(1)
        try:
            closing.submit(cases.close).result(30)
        finally:
            goes_on.set()
            closing.shutdown()
        with pytest.raises(CannotWrite, match="the review has ended"):
            making.result(60)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_makes_room(place: Path, tmp_path: Path) -> None:
    cases, source = CaseStore(tmp_path), FileSource(place)
    made = [
        cases.make(
            "x.zip",
            "Eve",
            "round 1",
            lambda out, tell: source.export(out, Selection(1, 1), "Eve", "", tell),
        )
        for _ in range(MAX_CASES + 1)
    ]
    assert cases.find(made[0].id, "Eve") is None
    assert not made[0].file.exists()
    for one in made[1:]:
        assert cases.find(one.id, "Eve") is one
        assert cases.find(one.id, "Ann") is None
    cases.close()
    assert list(tmp_path.iterdir()) == []
