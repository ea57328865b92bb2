"""The pictures of the README, the review that one of them shows, and designed states of the
dealer's page in a browser: all is in sight, and a finger hits what it is to hit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser

from controller.procedure.model.effects import Tell
from controller.procedure.model.state import WAITING
from controller.rules.irregularities import FIXED, Irregularity
from controller.screens.common.sessions import Appearance
from controller.screens.console.view import console_of
from tests.support.asynchronous import asynchronous
from tests.support.screens.browser.designed import (
    THEMES,
    WINDOWS,
    Designed,
    by_name,
    designed,
    drawn,
    look,
    named,
)
from tests.support.screens.browser.page import (
    SIZES,
    InChromium,
    barred,
    chromium,
    cut_names,
    kept_open,
    scrolls_sideways,
    too_small,
    unfit,
    wrong_with,
)
from tests.support.screens.browser.pictures import (
    ALIKE,
    FOLDER,
    MOST,
    _at,
    _pressed,
    draw,
    reviewed,
    wrong_in_review,
)
from tests.support.screens.console.shown_at import TEXTS, view_at

REVIEW_WINDOWS: Final = (("small", Appearance(theme="dark")), ("usual", Appearance(theme="light")))
"""All others, and all pages in each, by `make screenshots`."""


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
@asynchronous
async def test_what_matters_is_in_sight() -> None:
    """Every figure of the report, each hint of the filters, and what plays a round."""
    async with chromium() as browser:
        async with reviewed(browser) as page:
            await _at(page, "/report")
            assert (await page.evaluate(_HIDES), await cut_names(page)) == ([], [])
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


@pytest.mark.timeout(240)
def test_nobody_is_barred_from_the_review() -> None:
    assert asyncio.run(wrong_in_review(REVIEW_WINDOWS, 1, ALIKE)) == []


_LEAST_FELT: Final = 140
"""Pixels that it is high at least."""
AT_ONCE: Final = (
    Irregularity.DEALER_OVERDREW,
    Irregularity.DEALER_CARD_MISSED,
    Irregularity.PLAYER_ABSENT,
    Irregularity.SEAT_MISSED,
    Irregularity.SEAT_SHORTED,
)


@pytest.fixture(scope="module")
def in_chromium() -> Iterator[InChromium[Any]]:
    with kept_open() as runs:
        yield runs


@pytest.mark.timeout(400)
def test_each_state_can_be_used(in_chromium: InChromium[None]) -> None:
    """Each sixth state, in one of the windows."""

    async def looked(browser: Browser) -> None:
        some = designed()[::6]
        for number, (size, looks) in enumerate(WINDOWS):
            assert await look(browser, some[number :: len(WINDOWS)], size, looks) == []

    in_chromium(looked)


@pytest.mark.timeout(240)
def test_every_screen_fits_where_it_is_shown(in_chromium: InChromium[None]) -> None:
    """The smallest shows the instruction and all that answers it without scrolling, the others the
    whole table; every button is large enough for a finger, and no words lie on others."""
    tells = {tell.value for tell in Tell}
    busiest = [Designed(name, at) for name, at in by_name().items() if name in tells]
    assert len(busiest) > 25
    others = ("only watching", "stopped record", "record not witnessed for days")

    async def looked(browser: Browser) -> None:
        async with drawn(browser, "small", THEMES[1]) as show:
            for state in (*busiest, *map(named, others)):
                page = await show(state)
                for size, (width, height) in SIZES.items():
                    await page.set_viewport_size({"width": width, "height": height})
                    wrong = [
                        *await unfit(page, scrolls=size == "small"),
                        *await too_small(page),
                        *await scrolls_sideways(page),
                    ]
                    assert wrong == [], (state.name, size)

    in_chromium(looked)


def test_each_step_and_each_prompt_is_among_them() -> None:
    states = designed()
    assert len({one.name for one in states}) == len(states)
    assert {one.at.state.step for one in states} >= set(WAITING)
    prompts = {prompt.tell for one in states if (prompt := view_at(one.at, one.around).prompt)}
    assert prompts == set(Tell)


def test_each_irregularity_that_holds_a_table_is_among_them() -> None:
    """The others go on at once, in each house; or are in the rows themselves."""
    held = {hold.what for one in designed() for hold in one.at.state.holds}
    assert set(Irregularity) - held <= {*FIXED, *AT_ONCE, Irregularity.FACE_UP_CARD}


_OF_THE_FELT: Final = (
    ("confirm_felt restarted", "#felt-picture"),
    ("deal at hand_card", ".felt .next"),
    ("deal at dealing", ".felt .next"),
    ("pay", ".felt .due-now"),
    ("take_wagers", "#felt-picture"),
    ("only watching", ".felt .total.big"),
)
"""What a dealer looks for on the picture."""
_ON_PICTURE: Final = """wanted => {
  const felt = document.getElementById("felt-picture").getBoundingClientRect();
  const box = document.querySelector(wanted).getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth && box.width > 0
    ? felt.height : 0;
}"""
_ALWAYS: Final = ("#status-shoe .said", "#status-dealer .said", ".tools .signed", ".tools .screen")
"""What is told at every size."""
_UNSEEN: Final = """wanted => wanted.filter((one) => {
  const found = document.querySelector(one);
  const box = found.getBoundingClientRect();
  return !found.checkVisibility() || box.width < 8 || box.right > innerWidth || box.bottom > 66;
})"""


def test_the_felt_is_in_sight_on_the_smallest_screen(in_chromium: InChromium[None]) -> None:
    """Beside what answers: it is compared, dealt to and paid on."""

    async def looked(browser: Browser) -> None:
        async with drawn(browser, "small", THEMES[0]) as show:
            for name, wanted in _OF_THE_FELT:
                page = await show(named(name))
                assert await page.evaluate(_ON_PICTURE, wanted) >= _LEAST_FELT, name

    in_chromium(looked)


def test_who_deals_and_how_the_shoe_stands_is_told_at_every_size(
    in_chromium: InChromium[None],
) -> None:
    async def looked(browser: Browser) -> None:
        async with drawn(browser, "small", THEMES[0]) as show:
            page = await show(named("decide"))
            for size, (width, height) in SIZES.items():
                await page.set_viewport_size({"width": width, "height": height})
                assert await page.evaluate(_UNSEEN, list(_ALWAYS)) == [], size
                assert "2 dealt" in await page.inner_text("#status-shoe")

    in_chromium(looked)


def test_a_long_list_of_troubles_is_reached_by_keyboard(in_chromium: InChromium[None]) -> None:
    async def looked(browser: Browser) -> None:
        async with drawn(browser, "small", THEMES[0], bypass_csp=True) as show:
            page = await show(named("only watching, many troubles"))
            assert await page.evaluate(
                "() => { const s = document.getElementById('side');"
                " return s.scrollHeight > s.clientHeight; }"
            )
            assert await barred(page) == []

    in_chromium(looked)


def test_what_is_wrong_is_found(in_chromium: InChromium[list[str]]) -> None:
    """Small print, a small button, words without room: each is named."""

    async def looked(browser: Browser) -> list[str]:
        async with drawn(browser, "small", THEMES[0], bypass_csp=True) as show:
            page = await show(named("clear"))
            assert await wrong_with(page, dialog=False) == []
            assert await unfit(page, scrolls=True) == []
            await page.add_style_tag(content="#status .name { color: #7f8f86 !important }")
            await page.add_style_tag(content="#open-keys { min-height: 40px; height: 40px }")
            await page.add_style_tag(content="#answers { margin-top: 400px }")
            await page.add_style_tag(content="#felt { width: 1000px }")
            await page.evaluate("document.documentElement.removeAttribute('lang')")
            assert await barred(page) != []
            assert len(await too_small(page)) == 1
            return await wrong_with(page, dialog=False) + await unfit(page, scrolls=False)

    found = " ".join(in_chromium(looked))
    for what in (
        "color-contrast-enhanced",
        "html-has-lang",
        "too small: open-keys",
        "out of sight: act-cleared",
        "too low: act-cleared",
        "scrolls sideways",
    ):
        assert what in found, what


def test_what_is_shown_is_what_the_procedure_says() -> None:
    """A name is no invention: the page of a prompt says its words."""
    for state in designed():
        view = view_at(state.at, state.around)
        assert console_of(view, state.at.game, state.here, TEXTS).instruction.large
        if not view.stopped:
            assert view.prompt is not None
