"""Every irregularity at the dealer's page, by touch or by keyboard alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.screens.browser.irregular import IN_ONE_DECK, IN_USUAL_DECKS, ONE_DECK
from tests.screens.browser.stories import play, recorded
from tests.screens.browser.table import How, at_table

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
