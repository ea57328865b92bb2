"""At the dealer's page: whole rounds of each game by touch and by keyboard alone, each irregularity
by one of them, a controller that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from controller.procedure.model.state import Step
from tests.support.screens.browser.stories import (
    IN_ONE_DECK,
    IN_USUAL_DECKS,
    ONE_DECK,
    play,
    recorded,
)
from tests.support.screens.browser.table import ALL, HERE, How, at_table, killed_at, whole_round

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


@pytest.mark.parametrize(("game", "how"), [one for one in ALL if one not in HERE])
def test_a_whole_round(game: str, how: How, tmp_path: Path) -> None:
    whole_round(game, how, tmp_path)


def test_a_controller_that_is_killed_while_a_seat_decides(tmp_path: Path) -> None:
    killed_at(Step.TURN, tmp_path)
