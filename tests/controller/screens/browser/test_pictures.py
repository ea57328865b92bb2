"""The pictures of the README, and the review that one of them shows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page

from controller.screens.common.sessions import Appearance
from tests.controller.screens.browser.test_designed import artifacts
from tests.controller.screens.test_look import PATHS
from tests.support.screens.browser.checked import barred, cut_names, scrolls_sideways
from tests.support.screens.browser.page import chromium
from tests.support.screens.browser.pictures import FOLDER, MOST, SIGNS_IN, draw, reviewed
from tests.support.screens.console.shown_at import TEXTS
from tests.support.screens.looked_at import HERE

WINDOWS: Final = (("small", Appearance(theme="dark")), ("usual", Appearance(theme="light")))
"""All others by `make campaign`."""


def test_the_pictures_are_those_that_are_drawn(tmp_path: Path) -> None:
    """Not bit for bit: another machine has other fonts."""
    drawn = asyncio.run(draw(tmp_path))
    kept = {one.name: one for one in FOLDER.iterdir()}
    assert {one.name for one in drawn} == set(kept)
    assert all(one.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for one in kept.values())
    assert all(one.stat().st_size <= MOST for one in kept.values())


async def _at(page: Page, path: str) -> None:
    await page.goto(f"{HERE}{path}")


async def _pressed(page: Page, path: str, button: str) -> None:
    """What a form of that page comes to."""
    await _at(page, path)
    async with page.expect_navigation():
        await page.get_by_role("button", name=button, exact=True).first.click()


VIEWS: Final[dict[str, Callable[[Page], Awaitable[None]]]] = {
    **{path.strip("/").replace("/", "-"): partial(_at, path=path) for path in PATHS},
    "rounds-found": partial(_at, path="/rounds?problems=yes&seat=2&from=2020-01-01"),
    "rounds-none": partial(_at, path="/rounds?seat=900"),
    "rounds-wrong": partial(_at, path="/rounds?card=TH&seat=x&problems=yes"),
    "round-whole": partial(_at, path="/rounds/5?all=yes"),
    "record": partial(_at, path="/records/40"),
    "verdict": partial(_pressed, path="/rounds/3", button=TEXTS("round.verify")),
    "verified": partial(_pressed, path="/verify", button=TEXTS("verify.start")),
    "case-made": partial(_pressed, path="/export?round=3", button=TEXTS("export.make")),
    "sign-in": partial(_at, path=SIGNS_IN),
    "sign-in-again": partial(_at, path=f"{SIGNS_IN}?again"),
    "sign-in-wait": partial(_at, path=f"{SIGNS_IN}?wait"),
    "error-no-round": partial(_at, path="/rounds/9999999"),
    "error-no-page": partial(_at, path="/nothing"),
    "error-old-link": partial(_at, path="/enter?word=x"),
    "report-wrong-time": partial(_at, path="/report?from=yesterday"),
}
"""Every page of the review by a name, and how somebody comes to it."""


async def wrong_in_review(windows: tuple[tuple[str, Appearance], ...], share: int) -> list[str]:
    """`share`: each page in so many of the windows. With HOLECARD_ARTIFACTS the pictures are left
    in that folder."""
    found = []
    folder = artifacts()
    async with chromium() as browser:
        for number, (size, looks) in enumerate(windows):
            async with reviewed(browser, size, looks, bypass_csp=True) as page:
                for place, (name, comes) in enumerate(VIEWS.items()):
                    if (number - place) % len(windows) >= share:
                        continue
                    await comes(page)
                    failed = await page.get_by_role("heading", name=TEXTS("problem.title")).count()
                    assert bool(failed) == name.startswith("error"), name
                    where = f"{name} at {size}, {looks.theme}"
                    if folder is not None:
                        file = folder / f"review-{name}.{size}.{looks.theme}.png"
                        await page.screenshot(path=file, animations="disabled")
                    found += [f"{where}: {one}" for one in await barred(page)]
                    found += [f"{where}: out of its plot: {one}" for one in await cut_names(page)]
                    if wide := await scrolls_sideways(page):
                        found.append(f"{where}: scrolls sideways, {wide}")
    return found


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
                there = await page.locator("[aria-current=step].problem").count()
                assert there == 1

    asyncio.run(looked())


@pytest.mark.timeout(240)
def test_nobody_is_barred_from_the_review() -> None:
    assert asyncio.run(wrong_in_review(WINDOWS, 1)) == []
