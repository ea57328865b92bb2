"""Designed states of the dealer's page as a browser shows them: nobody is barred from them, a
finger hits what it is to hit, and nothing that matters is out of sight.

Every second state here, each in a size and a theme in turn; all of them in all by `make campaign`.
With HOLECARD_ARTIFACTS the pictures are left in that folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest

from controller.procedure.model.effects import Tell
from controller.procedure.model.state import WAITING
from controller.rules.irregularities import FIXED, Irregularity
from controller.screens.common.sessions import Appearance
from controller.screens.console.view import console_of
from tests.support.screens.browser.checked import barred, too_small, wrong_with
from tests.support.screens.browser.designed import (
    THEMES,
    WINDOWS,
    designed,
    drawn,
    look,
    named,
)
from tests.support.screens.browser.page import SIZES, chromium
from tests.support.screens.console.shown_at import TEXTS, view_at

_LEAST_FELT: Final = 140
"""Pixels that it is high at least."""
AT_ONCE: Final = (
    Irregularity.DEALER_OVERDREW,
    Irregularity.DEALER_CARD_MISSED,
    Irregularity.PLAYER_ABSENT,
    Irregularity.SEAT_MISSED,
    Irregularity.SEAT_SHORTED,
)


async def look_at(windows: Sequence[tuple[str, Appearance]], share: int) -> list[tuple[str, str]]:
    """`share`: each sixth state in so many of the windows."""
    found = []
    async with chromium() as browser:
        for number, (size, looks) in enumerate(windows):
            mine = [
                one
                for place, one in enumerate(designed()[::6])
                if (number - place) % len(windows) < share
            ]
            found += await look(browser, mine, size, looks)
    return found


@pytest.mark.timeout(400)
def test_each_state_can_be_used() -> None:
    assert asyncio.run(look_at(WINDOWS, 1)) == []


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


def test_the_felt_is_in_sight_on_the_smallest_screen() -> None:
    """Beside what answers: it is compared, dealt to and paid on."""

    async def looked() -> None:
        async with chromium() as browser, drawn(browser, "small", THEMES[0]) as show:
            for name, wanted in _OF_THE_FELT:
                page = await show(named(name))
                assert await page.evaluate(_ON_PICTURE, wanted) >= _LEAST_FELT, name

    asyncio.run(looked())


def test_who_deals_and_how_the_shoe_stands_is_told_at_every_size() -> None:
    async def looked() -> None:
        async with chromium() as browser:
            for size in SIZES:
                async with drawn(browser, size, THEMES[0]) as show:
                    page = await show(named("decide"))
                    assert await page.evaluate(_UNSEEN, list(_ALWAYS)) == [], size
                    assert "2 dealt" in await page.inner_text("#status-shoe")

    asyncio.run(looked())


def test_a_long_list_of_troubles_is_reached_by_keyboard() -> None:
    async def looked() -> None:
        async with (
            chromium() as browser,
            drawn(browser, "small", THEMES[0], bypass_csp=True) as show,
        ):
            page = await show(named("only watching, many troubles"))
            assert await page.evaluate(
                "() => { const s = document.getElementById('side');"
                " return s.scrollHeight > s.clientHeight; }"
            )
            assert await barred(page) == []

    asyncio.run(looked())


def test_what_is_wrong_is_found() -> None:
    """Small print, a small button, words without room: each is named."""

    async def looked() -> list[str]:
        async with (
            chromium() as browser,
            drawn(browser, "small", THEMES[0], bypass_csp=True) as show,
        ):
            page = await show(named("clear"))
            assert await wrong_with(page, dialog=False) == []
            await page.add_style_tag(content="#status .name { color: #7f8f86 !important }")
            await page.add_style_tag(content="#open-keys { min-height: 40px; height: 40px }")
            await page.add_style_tag(content="#answers { margin-top: 400px }")
            await page.add_style_tag(content="#felt { width: 1000px }")
            await page.evaluate("document.documentElement.removeAttribute('lang')")
            assert await barred(page) != []
            assert len(await too_small(page)) == 1
            return await wrong_with(page, dialog=False)

    found = " ".join(asyncio.run(looked()))
    for what in (
        "color-contrast-enhanced",
        "html-has-lang",
        "too small: open-keys",
        "out of sight: act-cleared",
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
