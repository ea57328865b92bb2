"""The controller dies at a record, and the round is dealt to the same end.

Before the record is written, and after it but before anybody hears of it: what a device told comes
again and is not taken twice, what people did is asked for again, what was done is not done twice.
Every thirtieth record here and every payment, and all of them in tests/long/campaigns.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.procedure.model.effects import Prompt
from controller.table.memory.display import PAYMENTS
from tests.support.table.simulated.killing import Ended, dealt

STEP = 30


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return dealt(tmp_path_factory.mktemp("whole"), "classic")


def same(found: Ended, whole: Ended, kill: int) -> None:
    assert found.state == whole.state, kill
    assert found.settled == whole.settled, kill
    assert found.findings == [], kill
    assert found.kinds.count("opened") == 2


def test_nobody_dies(whole: Ended) -> None:
    assert (len(whole.settled), whole.findings, whole.repeats) == (4, [], [])
    assert whole.kinds.count("opened") == 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_it_dies_at_a_record(before: bool, whole: Ended, tmp_path: Path) -> None:
    repeats: list[Prompt] = []
    for kill in sorted({*range(1 if before else 0, whole.groups, STEP), *whole.paid}):
        found = dealt(tmp_path / str(kill), "classic", kill, before=before)
        same(found, whole, kill)
        repeats += found.repeats
    # Payments that were shown already say so, and nothing else does.
    assert len(repeats) >= len(whole.paid) // 2
    assert {prompt.tell for prompt in repeats} <= PAYMENTS
