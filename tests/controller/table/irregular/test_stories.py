"""Each irregularity at a served table, in each house, and once for each way that is open there."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.rules.irregularities import Way
from tests.support.table.simulated.irregular import Case, tell
from tests.support.table.stories import CASES, MODULES

TOLD = [
    pytest.param(case, house, way, id=f"{case.name}-{house}-{way.value}")
    for case in CASES
    if case.story is not None
    for house, ways in case.ways.items()
    for way in ways
]


@pytest.mark.parametrize(("case", "house", "way"), TOLD)
def test_a_story(case: Case, house: str, way: Way, tmp_path: Path) -> None:
    tell(case, house, way, tmp_path)


def test_each_module_has_stories() -> None:
    told = {case.name.partition(".")[0] for case in CASES if case.story is not None}
    assert told == {module.__name__.rpartition(".")[2] for module in MODULES}
