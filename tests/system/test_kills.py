"""The daemon is killed repeatedly, over ptys and USB, and the shoe has the same final record.

It is killed after every few events, at any record and at any instant: while it starts, reconnects
devices, or runs an act. `make torture` kills it after each event of four games.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.table.memory.display import PAYMENTS
from tests.support.system.killed import Ended, at_decision, at_payment, by_chance, dealt

KILLS = 12
SEED = 8
MOST = 2
"""Events of the play from one death to the next, so that there is play for all of them."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The result without kills."""
    return asyncio.run(dealt(tmp_path_factory.mktemp("whole"), "classic"))


def same(killed: Ended, whole: Ended) -> None:
    assert killed.state == whole.state
    assert killed.played == whole.played
    assert killed.settled == whole.settled
    assert killed.findings == []
    # Only a payment that was shown before is marked as repeated.
    assert killed.unsaid == []
    assert {prompt.tell for prompt in killed.repeats} <= PAYMENTS


@pytest.mark.timeout(400)
def test_a_shoe_is_dealt_to_the_same_end_through_a_dozen_deaths(
    whole: Ended, tmp_path: Path, record_property: Any
) -> None:
    assert len(whole.played) > KILLS * MOST
    assert len(whole.settled) > 6
    assert (whole.findings, whole.repeats) == ([], [])
    random = Random(SEED)
    kills = [
        by_chance(random, MOST) if number % 2 else at_decision(random.randint(1, MOST))
        for number in range(KILLS)
    ]
    killed = asyncio.run(dealt(tmp_path, "classic", kills))
    assert killed.kills == KILLS
    same(killed, whole)
    record_property("kills of the whole daemon", KILLS)


@pytest.mark.timeout(200)
def test_a_payment_that_was_shown_before_says_so(
    whole: Ended, tmp_path: Path, record_property: Any
) -> None:
    """Each time that it is shown, until it is made."""
    killed = asyncio.run(dealt(tmp_path, "classic", [at_payment(), at_payment()]))
    assert killed.kills == 2
    same(killed, whole)
    assert len(killed.repeats) == 2
    assert killed.repeats[0] == killed.repeats[1]
    record_property("kills of the whole daemon", killed.kills)
