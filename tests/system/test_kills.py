"""The daemon is killed repeatedly, over ptys and USB, and the shoe has the same final record.

It is killed after every few events, at any record and at any instant: while it starts, reconnects
devices, or runs an act. `make torture` kills it after each event of four games.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.table.memory.display import PAYMENTS
from tests.support.asynchronous import asynchronous
from tests.support.system.killed import at_decision, at_payment, by_chance, dealt

KILLS = 4
SEED = 8
MOST = 2
"""Events of the play from one death to the next, so that there is play for all of them."""


@pytest.mark.timeout(400)
@asynchronous
async def test_a_shoe_is_dealt_to_the_same_end_through_many_deaths(
    tmp_path: Path, record_property: Any
) -> None:
    """At last twice before one payment, which says so each time until it is made."""
    random = Random(SEED)
    kills = [
        by_chance(random, MOST) if number % 2 else at_decision(random.randint(1, MOST))
        for number in range(KILLS)
    ]
    whole = await dealt(tmp_path / "whole", "classic")
    killed = await dealt(tmp_path / "killed", "classic", [*kills, at_payment(), at_payment()])
    assert len(whole.played) > KILLS * MOST
    assert len(whole.settled) > 6
    assert (whole.findings, whole.repeats) == ([], [])
    assert (killed.state, killed.played, killed.settled) == (
        whole.state,
        whole.played,
        whole.settled,
    )
    # Only a payment that was shown before is marked as repeated.
    assert (killed.kills, killed.findings, killed.unsaid) == (KILLS + 2, [], [])
    assert {prompt.tell for prompt in killed.repeats} <= PAYMENTS
    first, second = killed.repeats[-2:]
    assert first == second
    record_property("kills of the whole daemon", killed.kills)
