"""Rounds at the dealer's page, of one table by touch and of one by keyboard: irregularities, two
presses at once, a killed controller, two browsers. `make campaign` plays every game and story."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, Route

from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity
from firmware_protocol.device import ButtonName, Press
from hil.table.robots.surroundings import lit
from hil.table.setup import DEALER, GUEST, SECOND, RobotBadge
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import free_port
from tests.support.screens.browser.page import Touch, page_at
from tests.support.screens.browser.stories import STORIES, play, recorded
from tests.support.screens.browser.table import (
    TWO,
    AtTable,
    at_table,
    decided,
    is_killed,
    says,
)
from tests.support.table.simulated.telling import DEAL

SAMPLE: Final = (
    "a_card_that_is_not_read",
    "a_misdeal_and_a_round_that_is_void",
)


@pytest.mark.timeout(300)
def test_a_table_that_is_dealt_by_touch(tmp_path: Path) -> None:
    """A whole round, what goes wrong in others, and a controller that is killed."""

    async def played() -> Path:
        async with at_table(tmp_path, "classic", port=free_port()) as table:
            await table.open()
            await pays_once_for_two_presses(table)
            await play(table, SAMPLE)
            await is_killed(table, Step.PAYING)
            return table.stage.house.record

    recorded(asyncio.run(played()), SAMPLE)


@pytest.mark.parametrize("what", Irregularity, ids=lambda what: what.value)
def test_there_is_a_story_of_each(what: Irregularity) -> None:
    told = [one for one in STORIES.values() if one.what is what]
    # That one is no story: the controller is killed, and the felt compared.
    assert told or what is Irregularity.RESTARTED


BETWEEN: Final = 120
"""Milliseconds from one press to the next: a bounce, a double click; the next payment is shown
then already."""


async def pays_once_for_two_presses(table: AtTable) -> None:
    """From the closed table; and a wager whose amount is none is not sent."""
    hand = table.dealer.hand
    button = await table.page.locator("#wager-seat-2 button.act").first.get_attribute("id")
    assert button is not None
    await hand.press(button)
    for odd in ("12,50", "1,2500", "1 25", ".5", "-5", "1e3", ""):
        await hand.fill("field-amount", odd)
        await hand.press("ask-send")
        await table.page.locator("#ask-wrong:not(:empty)").wait_for()
        assert table.stands.seats == ()
        await table.page.evaluate("document.getElementById('ask-wrong').textContent = ''")
    await hand.press("ask-cancel")
    await table.to_step(Step.PAYING)
    owed = len(table.stands.due)
    assert owed > 1
    await table.dealer.caught_up()
    await table.page.locator("#answers button[data-key=p]").dblclick(delay=BETWEEN // 2)
    # What comes next is done as ever: both payments are asked for, and each is made once.
    await table.to_step(Step.WAGERING)
    assert (table.stands.round, decided(table.stage.house.record)["Paid"]) == (1, owed)
    assert (table.robot.refused, table.wrong) == ([], [])


OFFERS: Final = "#console button.act[data-act]"


async def sees(table: AtTable, page: Page) -> None:
    """The page shows what the table shows."""
    await table.hands_at(page).caught_up()


async def tries(page: Page, who: RobotBadge, pin: str) -> str:
    """A badge and PIN without taking the table over: why not. The PIN does not stay there."""
    hand = Touch(page)
    if not await page.locator("#sign[open]").count():
        await hand.press("sign-in")
    await hand.fill("sign-badge", who.badge)
    await hand.fill("sign-pin", pin)
    async with page.expect_response(lambda found: found.url.endswith("/sign-in")) as waiting:
        await hand.press("sign-send")
    assert not (await waiting.value).ok
    assert await page.input_value("#sign-pin") == ""
    await page.wait_for_function(
        "() => document.getElementById('sign-wrong').textContent !== '' "
        "&& !document.documentElement.classList.contains('sending')"
    )
    found = await page.inner_text("#sign-wrong")
    await page.evaluate("document.getElementById('sign-wrong').textContent = ''")
    return found


@pytest.mark.timeout(300)
@asynchronous
async def test_two_browsers_at_a_table_that_is_dealt_by_keyboard(tmp_path: Path) -> None:
    async with at_table(tmp_path, "mega", "keys") as table:
        await table.open()
        await table.round()
        assert (table.stands.round, table.wrong) == (1, [])
        before = decided(table.stage.house.record)
        await table.fresh((*DEAL, "9d", "3d"), TWO, {})
        await table.to_step(Step.TURN)
        other = await page_at(table.browser, table.page.url, touch=True)
        await watches(table, other)
        await is_turned_away(other)
        await takes_over(table, other)
        await is_loaded_again(table, other)
        await presses_on_an_old_picture(table, other)
        await loses_its_line(table, other)
        table.robot.screen = table.hands_at(other)
        await table.to_end()
        assert table.wrong == []
        made = decided(table.stage.house.record) - before
        assert (made["Hit"], made["CardDrawn"]) == (1, len(DEAL))


async def watches(table: AtTable, other: Page) -> None:
    """It sees each step, and has nothing to press; a player presses a button of the seat."""
    await sees(table, other)
    assert DEALER.name in await other.inner_text("#now .watching")
    assert not await other.locator(OFFERS).count()
    assert await says(other) == await says(table.page)
    await presses(table, "hit")
    for page in (table.page, other):
        await sees(table, page)
        assert await says(page) == "Deal seat 1, third card"
    await table.draws()
    await sees(table, other)
    assert await says(other) == "Seat 1 - hard 20"
    await presses(table, "stand")
    for page in (table.page, other):
        await sees(table, page)
        assert await says(page) == "Seat 2 - hard 18"


async def presses(table: AtTable, button: ButtonName) -> None:
    """The player at seat 1, when it lights up."""
    station = table.stage.station_of(1)
    assert station is not None
    assert await lit(station, 1, button)
    await table.heard(station, Press(seat=1, button=button))


async def is_turned_away(other: Page) -> None:
    """While somebody deals, and for a PIN that is not right; then for whatever PIN, for a while."""
    assert "Another dealer is signed in" in await tries(other, GUEST, GUEST.pin)
    said = [await tries(other, GUEST, "000000") for _ in range(4)]
    assert "right" in said[0]
    assert re.search(r"in \d+ seconds", said[-1]), said
    locked = await tries(other, GUEST, GUEST.pin)
    assert re.search(r"in \d+ seconds", locked), locked
    content = await other.content()
    assert not any(pin in content for pin in ("000000", GUEST.pin))
    await Touch(other).press("sign-cancel")
    assert not await other.locator(OFFERS).count()


async def takes_over(table: AtTable, other: Page) -> None:
    """And the first page says so by itself."""
    step = await says(table.page)
    await table.hands_at(other).sign_in(SECOND, relieve=True)
    await table.page.locator("#now .watching", has_text=SECOND.name).wait_for()
    assert not await table.page.locator(OFFERS).count()
    assert await says(table.page) == await says(other) == step
    assert await other.locator(OFFERS).count()


async def is_loaded_again(table: AtTable, other: Page) -> None:
    step, offers = await says(other), await other.locator(OFFERS).count()
    await other.reload()
    assert (await says(other), await other.locator(OFFERS).count()) == (step, offers)
    assert SECOND.name in await other.inner_text("#status-dealer")


async def presses_on_an_old_picture(table: AtTable, other: Page) -> None:
    """A second tab that has not heard of what was done at the first one."""
    tab = await other.context.new_page()
    tab.on("pageerror", lambda error: table.wrong.append(f"failed: {error}"))
    held = asyncio.Event()

    async def silent(route: Route) -> None:
        await held.wait()
        await route.abort()

    await tab.route("**/stream", silent)
    await tab.goto(other.url)
    assert await says(tab) == "Seat 2 - hard 18"
    await table.hands_at(other).act("Stand", {"seat": 2, "hand": 0}, "dealer")
    stood = table.stands
    await Touch(tab).press("act-stand")
    await tab.wait_for_selector("#refused:not([hidden])")
    assert "moved on" in await tab.inner_text("#refused")
    await sees(table, other)
    assert table.stands == stood
    held.set()
    await tab.close()


async def loses_its_line(table: AtTable, other: Page) -> None:
    """It says so at once and takes no press; and finds the table again without being loaded."""

    async def cut(route: Route) -> None:
        await route.abort()

    await other.route("**/stream", cut)
    await other.reload()
    await other.evaluate("window.sameDocument = true")
    await other.locator("#banner").wait_for()
    assert "Connection lost" in await other.inner_text("#banner")
    assert await other.locator(OFFERS).count() == await other.locator(f"{OFFERS}:disabled").count()
    step = await says(other)
    await other.unroute("**/stream", cut)
    await other.locator("#banner").wait_for(state="hidden")
    assert await says(other) == step
    assert not await other.locator(f"{OFFERS}:disabled").count()
    assert await other.evaluate("window.sameDocument")
