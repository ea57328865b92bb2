"""The console at the sizes of screens that tables have: in Chromium, without a table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Route

from controller.procedure.model.effects import Tell
from controller.screens.console.view.page import ConsolePage
from controller.table.memory import WitnessStatus
from tests.support.screens.browser.page import SIZES, chromium
from tests.support.screens.console.shown_at import (
    HOUSE,
    LONG,
    STATIC,
    WATCHES,
    Around,
    At,
    console_at,
    everywhere,
    page,
    view_at,
)

HERE_IS: Final = "http://table.test/"
_LEAST: Final = 63.5
_MEASURED: Final = """() => {
  const box = (one) => one.getBoundingClientRect();
  const seen = (all) => [...document.querySelectorAll(all)].filter((one) => one.offsetParent);
  const words = () => [...document.querySelectorAll("#felt-picture > text")]
    .filter((one) => getComputedStyle(one).display !== "none");
  // Their boxes are as high as letters can be: a little of those may meet.
  const meet = (one, two) => {
    const [a, b] = [box(one), box(two)];
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4.5;
  };
  return {
    last: Math.max(...seen("h1, #answers button, #wagers button").map((one) => box(one).bottom)),
    wide: document.documentElement.scrollWidth,
    high: document.documentElement.scrollHeight,
    over: words().flatMap((one, at, all) => all.slice(at + 1).filter((two) => meet(one, two))
      .map((two) => `${one.textContent} / ${two.textContent}`)),
    small: seen("button").map(box).filter((one) => one.width < LEAST || one.height < LEAST).length,
  };
}""".replace("LEAST", str(_LEAST))


def busiest() -> Iterator[tuple[str, ConsolePage]]:
    """Of each prompt the state with the most on the felt, and screens that are no prompt's."""
    found: dict[Tell, At] = {}
    for at in everywhere("fits", 120, LONG, HOUSE):
        prompt = view_at(at).prompt
        assert prompt is not None
        if prompt.tell not in found or _on_felt(at) > _on_felt(found[prompt.tell]):
            found[prompt.tell] = at
    assert len(found) > 25
    for tell, at in found.items():
        yield tell.value, console_at(at)
    some = found[Tell.DECIDE]
    yield "watched", console_at(some, WATCHES)
    yield "stopped", console_at(some, around=Around(stopped="no room on the disk"))
    unseen = Around(witness=WitnessStatus(9, 1_799_900_000_000_000), utc=1_800_000_000_000_000)
    yield "unwitnessed", console_at(some, around=unseen)


def _on_felt(at: At) -> int:
    return len(at.state.seats) * 6 + sum(len(hand.cards) for hand in at.state.hands)


async def measured(
    browser: Browser, size: str, shown: list[tuple[str, ConsolePage]]
) -> dict[str, Any]:
    width, height = SIZES[size]
    context = await browser.new_context(viewport={"width": width, "height": height})
    tab = await context.new_page()
    html = ""

    async def answer(route: Route) -> None:
        path = route.request.url.removeprefix(HERE_IS.rstrip("/"))
        if path == "/":
            await route.fulfill(body=html, content_type="text/html; charset=utf-8")
            return
        _, _, hashed, name = path.split("/")
        found = STATIC.answer(hashed, name)
        if found is None or name.endswith(".js"):
            await route.abort()
            return
        await route.fulfill(body=bytes(found.body), content_type=found.media_type)

    await tab.route("**/*", answer)
    said = {}
    for name, console in shown:
        html = page(console, (("dealer", "Dana"),))
        await tab.goto(HERE_IS)
        said[name] = await tab.evaluate(_MEASURED)
    await context.close()
    return said


@pytest.mark.timeout(180)
def test_every_screen_fits_where_it_is_shown() -> None:
    """The smallest shows the instruction and all that answers it without scrolling, the others the
    whole table; every button is large enough for a finger, and no words lie on others."""
    shown = list(busiest())

    async def looked() -> dict[str, dict[str, Any]]:
        async with chromium() as browser:
            return {size: await measured(browser, size, shown) for size in SIZES}

    for size, found in asyncio.run(looked()).items():
        width, height = SIZES[size]
        for name, one in found.items():
            assert one["wide"] <= width, (size, name)
            assert one["last"] <= height, (size, name)
            assert one["small"] == 0, (size, name)
            assert one["over"] == [], (size, name)
            assert size == "small" or one["high"] <= height, (size, name)
