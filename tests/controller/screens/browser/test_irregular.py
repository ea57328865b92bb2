"""Irregularities at the dealer's page, a few of them; `make campaign` tells all. There is a story
for each, and each is told somewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from controller.rules.irregularities import Irregularity
from tests.support.screens.browser.irregular import PARTS
from tests.support.screens.browser.stories import STORIES, play, recorded
from tests.support.screens.browser.table import How, at_table

SAMPLE: Final = (
    "a_card_that_is_not_read",
    "a_misdeal_and_a_round_that_is_void",
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["touch"])
def test_what_goes_wrong_goes_on_at_the_page(how: How, tmp_path: Path) -> None:
    async def told() -> Path:
        async with at_table(tmp_path, how=how) as table:
            await table.open()
            await play(table, SAMPLE)
            return table.stage.house.record

    recorded(asyncio.run(told()), SAMPLE)


@pytest.mark.parametrize("what", Irregularity, ids=lambda what: what.value)
def test_there_is_a_story_of_each(what: Irregularity) -> None:
    assert PARTS
    told = [one for one in STORIES.values() if one.what is what]
    # That one is told in test_again.py: the controller is killed, and the felt compared.
    assert told or what is Irregularity.RESTARTED
