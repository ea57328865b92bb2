"""A controller that is killed while the dealer's page is open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from playwright.async_api import Page

from controller.procedure.model.state import Step
from tests.support.daemon.rig import free_port
from tests.support.screens.browser.table import AtTable, at_table, decided, watching
from tests.support.table.simulated.telling import DEAL

TWO: Final = ((1, "main", 2500), (2, "main", 2500))


async def says(page: Page) -> str:
    return await page.inner_text("#instruction")


async def goes_on(table: AtTable, words: str) -> None:
    """Its session ended with the controller: it says so, and asks to be loaded again."""
    page = table.page
    await page.locator("#banner button").tap()
    await page.wait_for_selector("#sign-in")
    await table.dealer.sign_in(relieve=True)
    await table.shows("compare the felt with the screen", "controller restarted")
    await table.says("FeltConfirmed")
    assert await says(page) == words


def killed_at(step: Step, tmp_path: Path) -> None:
    """The page finds it again by itself, asks for the felt, and goes on from the same step."""

    async def played() -> Path:
        async with at_table(tmp_path, port=free_port()) as table:
            await table.open()
            await table.fresh((*DEAL, "9d"), TWO, {1: "hit"})
            await table.to_step(step)
            await table.dealer.caught_up()
            words, stood = await says(table.page), table.stands
            table.wrong.clear()
            await table.stage.daemon.kill()
            await table.page.locator("#banner").wait_for()
            assert "Connection lost" in await table.page.inner_text("#banner")
            await table.stage.daemon.start()
            async with watching(table.stage) as watcher:
                table.seen_by(watcher)
                await goes_on(table, words)
                assert table.stands.hands == stood.hands
                again = table.page.locator("#again")
                assert await again.count() == (step is Step.PAYING)
                await table.to_end()
            return table.stage.house.record

    record = asyncio.run(played())
    assert decided(record, "Hit") == 1
    assert decided(record, "FeltConfirmed") == 1
