"""At the dealer's page: whole rounds of each game by touch and by keyboard alone, each irregularity
by one of them, a controller that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from controller.procedure.model.state import Step
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import free_port
from tests.support.screens.browser.stories import (
    IN_ONE_DECK,
    IN_USUAL_DECKS,
    ONE_DECK,
    play,
    recorded,
)
from tests.support.screens.browser.table import How, at_table, is_killed

PARTS: Final = 4
"""Tables that are set up side by side. Nobody's badge is looked at too often at one of them."""


async def told(
    folder: Path, names: tuple[str, ...], how: How, options: Mapping[str, object] | None = None
) -> Path:
    async with at_table(folder, how=how, options=options) as table:
        await table.open()
        await play(table, names)
        return table.stage.house.record


@pytest.mark.parametrize("part", range(PARTS))
def test_what_goes_wrong(part: int, tmp_path: Path) -> None:
    names = IN_USUAL_DECKS[part::PARTS]
    record = asyncio.run(told(tmp_path, names, "keys" if part % 2 else "touch"))
    recorded(record, names)


@pytest.mark.parametrize("how", ["touch", "keys"])
def test_what_goes_wrong_in_one_deck(how: How, tmp_path: Path) -> None:
    recorded(asyncio.run(told(tmp_path, IN_ONE_DECK, how, ONE_DECK)), IN_ONE_DECK)


@pytest.mark.parametrize("how", ["touch", "keys"])
@pytest.mark.parametrize("game", ["classic", "maxtime", "mega", "sf21x"])
@asynchronous
async def test_a_whole_round(game: str, how: How, tmp_path: Path) -> None:
    """From a closed table to the next wagers."""
    async with at_table(tmp_path, game, how) as table:
        await table.open()
        await table.round()
        assert (table.stands.round, table.wrong) == (1, [])


@asynchronous
async def test_a_controller_that_is_killed_while_a_seat_decides(tmp_path: Path) -> None:
    async with at_table(tmp_path, port=free_port()) as table:
        await table.open()
        await is_killed(table, Step.TURN)
