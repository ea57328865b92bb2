"""The pictures of the README, and the review that one of them shows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from controller.screens.common.sessions import Appearance
from tests.support.screens.browser.checked import cut_names
from tests.support.screens.browser.page import chromium
from tests.support.screens.browser.pictures import (
    FOLDER,
    MOST,
    _at,
    _pressed,
    draw,
    reviewed,
    wrong_in_review,
)
from tests.support.screens.console.shown_at import TEXTS

WINDOWS: Final = (("small", Appearance(theme="dark")), ("usual", Appearance(theme="light")))
"""All others by `make campaign`."""


def test_the_pictures_are_those_that_are_drawn(tmp_path: Path) -> None:
    """Not bit for bit: another machine has other fonts."""
    drawn = asyncio.run(draw(tmp_path))
    kept = {one.name: one for one in FOLDER.iterdir()}
    assert {one.name for one in drawn} == set(kept)
    assert all(one.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for one in kept.values())
    assert all(one.stat().st_size <= MOST for one in kept.values())


_HIDES: Final = """() => [...document.querySelectorAll(".paces")]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.parentElement.clientWidth)
  .map((one) => one.textContent)"""
_CUT_HINTS: Final = """() => {
  const measure = document.createElement("canvas").getContext("2d");
  return [...document.querySelectorAll("input[placeholder]")].filter((one) => {
    const style = getComputedStyle(one);
    measure.font = style.font;
    const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return measure.measureText(one.placeholder).width > room;
  }).map((one) => one.name);
}"""


@pytest.mark.timeout(120)
def test_what_matters_is_in_sight() -> None:
    """Every figure of the report, each hint of the filters, and what plays a round."""

    async def looked() -> None:
        async with chromium() as browser:
            async with reviewed(browser) as page:
                await _at(page, "/report")
                assert await page.evaluate(_HIDES) == []
                assert await cut_names(page) == []
                await _at(page, "/rounds")
                assert await page.evaluate(_CUT_HINTS) == []
                (box,) = await page.locator("[name=problems]").all()
                place = await box.bounding_box()
                find = await page.locator(".ends button").bounding_box()
                assert place is not None
                assert find is not None
                assert find["x"] - place["x"] < 300
                await _pressed(page, "/verify", TEXTS("verify.start"))
                await page.locator("#run .verdict").wait_for()  # by itself
            async with reviewed(browser, "small") as page:
                await _at(page, "/rounds/3/replay")
                for part in ("#play", "#position", "#later_problem"):
                    place = await page.locator(part).bounding_box()
                    assert place is not None
                    assert place["y"] + place["height"] <= 480, part
                await page.locator("#later_problem").click()
                assert await page.locator("#now .mark.alarm").count() == 1
                assert await page.locator("#former_problem.off").count() == 1
                assert (await page.locator("[aria-current=step].problem").count()) == 1

    asyncio.run(looked())


@pytest.mark.timeout(240)
def test_nobody_is_barred_from_the_review() -> None:
    assert asyncio.run(wrong_in_review(WINDOWS, 1)) == []
