"""Whole rounds of each game at the dealer's page, by touch and by keyboard alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from tests.support.screens.browser.table import at_table

ALL = [(game, how) for game in ("classic", "maxtime", "mega", "sf21x") for how in ("touch", "keys")]
HERE = [("classic", "touch"), ("mega", "keys")]
"""The others are dealt by `make campaign`."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("game", "how"), HERE)
def test_a_whole_round_at_the_page(
    game: str, how: Literal["touch", "keys"], tmp_path: Path
) -> None:
    """From a closed table to the next wagers; and what went over the felt is what was recorded."""

    async def played() -> None:
        async with at_table(tmp_path, game, how) as table:
            await table.open()
            await table.round()
            assert table.stands.round == 1
            assert table.wrong == []

    asyncio.run(played())
