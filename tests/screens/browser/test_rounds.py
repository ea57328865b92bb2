"""Whole rounds of each game at the dealer's page, by touch and by keyboard alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from tests.screens.browser.table import at_table

HOWS = ("touch", "keys")
GAMES = ("classic", "maxtime", "mega", "sf21x")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("game", GAMES)
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
