"""The pictures of the README, and the review that one of them shows."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from controller.screens.common.sessions import Looks
from tests.screens.browser.checked import barred, scrolls_sideways
from tests.screens.browser.page import chromium
from tests.screens.browser.pictures import FOLDER, MOST, draw, reviewed
from tests.screens.looked_at import HERE
from tests.screens.test_look import PATHS

WINDOWS: Final = (("small", Looks(theme="dark")), ("usual", Looks(theme="light")))
"""All others by `make campaign`."""


def test_the_pictures_are_those_that_are_drawn(tmp_path: Path) -> None:
    """Not bit for bit: another machine has other fonts."""
    drawn = asyncio.run(draw(tmp_path))
    kept = {one.name: one for one in FOLDER.iterdir()}
    assert {one.name for one in drawn} == set(kept)
    assert all(one.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for one in kept.values())
    assert all(one.stat().st_size <= MOST for one in kept.values())


async def wrong_in_review(windows: tuple[tuple[str, Looks], ...], share: int) -> list[str]:
    """`share`: each page in so many of the windows."""
    found = []
    async with chromium() as browser:
        for number, (size, looks) in enumerate(windows):
            async with reviewed(browser, size, looks, bypass_csp=True) as page:
                for place, path in enumerate(PATHS):
                    if (number - place) % len(windows) >= share:
                        continue
                    await page.goto(f"{HERE}{path}")
                    where = f"{path} at {size}, {looks.theme}"
                    found += [f"{where}: {one}" for one in await barred(page)]
                    if wide := await scrolls_sideways(page):
                        found.append(f"{where}: scrolls sideways, {wide}")
    return found


@pytest.mark.timeout(240)
def test_nobody_is_barred_from_the_review() -> None:
    assert asyncio.run(wrong_in_review(WINDOWS, 1)) == []
