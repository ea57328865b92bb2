"""A finger that presses twice at the dealer's page, and one that types odd amounts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller.procedure.model.state import Step
from tests.support.screens.browser.table import AtTable, at_table, decided

BETWEEN = 120
"""Milliseconds from one press to the next: a bounce, a double click; the next payment is shown
then already."""


async def _wagers_of(table: AtTable, seat: int) -> str:
    """The button that enters a wager of the seat."""
    found = await table.page.locator(f"#wager-seat-{seat} button.act").first.get_attribute("id")
    assert found is not None
    return found


@pytest.mark.timeout(200)
def test_a_double_press_pays_once(tmp_path: Path) -> None:
    async def pressed() -> None:
        async with at_table(tmp_path, "classic") as table:
            await table.open()
            hand = table.dealer.hand
            await hand.press(await _wagers_of(table, 2))
            for odd in ("12,50", "1,2500", "1 25", ".5", "-5", "1e3", ""):
                await hand.fill("field-amount", odd)
                await hand.press("ask-send")
                await table.page.locator("#ask-wrong:not(:empty)").wait_for()
                assert table.stands.seats == ()
                await table.page.evaluate("document.getElementById('ask-wrong').textContent = ''")
            await hand.press("ask-cancel")
            await table.robot.play(lambda shown: shown.state.step is Step.PAYING)
            first, owed = table.stands.round, len(table.stands.due)
            assert owed > 1
            await table.dealer.caught_up()
            await table.page.locator("#answers button[data-key=p]").dblclick(delay=BETWEEN // 2)
            # What comes next is done as ever: both payments are asked for, and each is made once.
            await table.robot.play(lambda shown: shown.state.step is Step.WAGERING)
            assert table.stands.round == first
            assert decided(table.stage.house.record, "Paid") == owed
            assert (table.robot.refused, table.wrong) == ([], [])

    asyncio.run(pressed())
