"""The bench of the review: it opens what there is, and knows when nothing is there."""

from __future__ import annotations

import pytest

from hil.bench.measure import Pace
from hil.bench.review import FULL_ROUNDS, NAMES, REVIEW, ROUNDS, rounds_of


def test_a_review_is_measured() -> None:
    lines = {line.name: line for line in REVIEW.measure(Pace(slices=1, seconds=0.001))}
    assert lines["rounds"].value == rounds_of(Pace(slices=1, seconds=0.001)) >= 100
    assert set(NAMES) == {"list", "round", "card", "amount"}
    for name in NAMES:
        page, by_hand = (lines[one].value or 0.0 for one in (name, f"{name}_sql"))
        assert page > by_hand > 0
        assert lines[f"{name}_ratio"].value == pytest.approx(page / by_hand)
        assert lines[f"{name}_longest"].at_most == 0.5


def test_how_much_is_measured() -> None:
    assert rounds_of(Pace()) == ROUNDS
    assert rounds_of(Pace(full=True)) == FULL_ROUNDS == 10**6
