"""A whole round of a game at the dealer's page."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.screens.browser.table import How, at_table

ALL = [(game, how) for game in ("classic", "maxtime", "mega", "sf21x") for how in ("touch", "keys")]
HERE = [("classic", "touch"), ("mega", "keys")]
"""The others are dealt by `make campaign`."""


def whole_round(game: str, how: How, tmp_path: Path) -> None:
    """From a closed table to the next wagers; and what went over the felt is what was recorded."""

    async def played() -> None:
        async with at_table(tmp_path, game, how) as table:
            await table.open()
            await table.round()
            assert (table.stands.round, table.wrong) == (1, [])

    asyncio.run(played())
