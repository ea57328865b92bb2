"""Every designed state of the pages at every size, in a dark room and in a bright one."""

from __future__ import annotations

import asyncio

import pytest

from controller.screens.common.sessions import Appearance
from tests.support.asynchronous import asynchronous
from tests.support.screens.browser.designed import WINDOWS, designed, look
from tests.support.screens.browser.page import chromium
from tests.support.screens.browser.pictures import wrong_in_review

NAMES = [f"{size}-{looks.theme}" for size, looks in WINDOWS]


@pytest.mark.parametrize(("size", "looks"), WINDOWS, ids=NAMES)
@asynchronous
async def test_each_state_can_be_used(size: str, looks: Appearance) -> None:
    async with chromium() as browser:
        assert await look(browser, designed(), size, looks) == []


@pytest.mark.parametrize(("size", "looks"), WINDOWS, ids=NAMES)
def test_nobody_is_barred_from_the_review(size: str, looks: Appearance) -> None:
    assert asyncio.run(wrong_in_review(((size, looks),), 1)) == []
