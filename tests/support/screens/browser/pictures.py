"""The pictures of the README: the dealer's console in a round and while it pays, and the review of
a round. `make screenshots` draws them anew; the same code makes the same pictures.

    python -m tests.support.screens.browser.pictures [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import httpx
from playwright.async_api import Browser as Chromium
from playwright.async_api import FloatRect, Page, Route

from controller.api.contract.errors import Problem, denied
from controller.people import Denied
from controller.procedure.engine import Procedure
from controller.procedure.model.state import State, Step
from controller.screens.common.sessions import Appearance
from controller.screens.common.texts import load
from controller.screens.console.web import Browser
from controller.screens.review.web import pages_of
from controller.screens.review.web.login import form_page
from tests.support.paths import ROOT
from tests.support.screens.browser.designed import Designed, artifacts, drawn
from tests.support.screens.browser.page import SIZES, barred, chromium, cut_names, scrolls_sideways
from tests.support.screens.console.shown_at import TEXTS, At
from tests.support.screens.looked_at import EVE, HERE, Looking, dealt, mega, seen, written
from tests.support.screens.markup import PATHS

TOP: Final = FloatRect(x=0, y=0, width=1280, height=660)
"""What is shown of a page that goes on below."""
BRIGHT: Final = Appearance(theme="light")
FOLDER: Final = ROOT / "controller" / "screens" / "pictures"
SIZE: Final = "usual"
SEED: Final = "looks"
ROUNDS: Final = 12
REVIEWED: Final = 7
"""The round that the review shows."""
EVENTS: Final = 6000
"""Of a table that is looked at for the best of its rounds."""
RUNNING: Final = "/review"
"""Where the review of a running table is."""
SIGNS_IN: Final = f"{RUNNING}/enter"
ENTERING: Final[dict[str, tuple[Problem, ...]]] = {
    SIGNS_IN: (),
    f"{SIGNS_IN}?again": (denied(Denied("not right")),),
    f"{SIGNS_IN}?wait": (denied(Denied("wait", 30)),),
}
"""Where surveillance signs in at a running table, and what was wrong before."""
SENT: Final[tuple[str, ...]] = ("content-type", "origin", "sec-fetch-site")
"""What goes along with a form."""
MOST: Final = 150 * 1024
"""Bytes of a picture."""


def dealing() -> dict[str, Designed]:
    """Of each picture of the console the state that it shows: of a table with its own money."""
    game = mega()
    procedure = Procedure(game)
    table = dealt(SEED, 0)
    best: dict[str, tuple[int, At]] = {}
    for _ in range(EVENTS):
        table.once()
        s = table.state
        for name, fits in FITS.items():
            worth = _variety(s)
            if _usual(s) and fits(s) and (name not in best or best[name][0] < worth):
                best[name] = worth, At(game, procedure, s, {})
    return {name: Designed(name, best[name][1]) for name in FITS}


def _usual(s: State) -> bool:
    """A round as people know it; a full table is hard to read in a README."""
    few = all(len(hand.cards) <= 3 for hand in s.hands) and len(s.dealer) <= 3
    calm = not s.holds and not s.lost and s.spare is None and s.shoe.rounds_left < 0
    return few and calm and 2 < len(s.seats) < 7


def _variety(s: State) -> int:
    cards = [*s.dealer, *(card for hand in s.hands for card in hand.cards)]
    return 2 * len({card % 13 for card in cards}) + len(set(cards)) - len(s.hands)


FITS: Final[dict[str, Callable[[State], bool]]] = {
    "console": lambda s: s.step is Step.TURN,
    "console-pays": lambda s: (
        s.step is Step.PAYING and s.after is Step.CLEARING and s.due[0].returned > s.due[0].stake
    ),
}


@asynccontextmanager
async def reviewed(
    browser: Chromium, size: str = SIZE, looks: Appearance = BRIGHT, *, bypass_csp: bool = False
) -> AsyncIterator[Page]:
    """A page in the review of a record that was made for this."""
    width, height = SIZES[size]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "record"
        table = dealt(SEED, ROUNDS)
        written(place, table, seen(table.entries))
        with Looking(place, Path(scratch) / "index") as looking:
            await asyncio.to_thread(looking.enter, EVE)
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                reduced_motion="reduce",
                bypass_csp=bypass_csp,
                color_scheme="dark" if looks.theme == "dark" else "light",
            )
            transport = httpx.ASGITransport(app=looking.app)

            async def answer(route: Route) -> None:
                asked = route.request
                path = asked.url.removeprefix(HERE).partition("#")[0]
                if (shown := ENTERING.get(path)) is not None:
                    form = form_page(ENTERS, cast(Browser, SimpleNamespace(secret="")), *shown)
                    kinds = {"content-type": form.headers["content-type"]}
                    await route.fulfill(
                        status=form.status_code, headers=kinds, body=bytes(form.body)
                    )
                    return
                sent: dict[str, str] = {
                    name: asked.headers[name] for name in SENT if name in asked.headers
                }
                # Chromium asks for a page that it is sent on to past this route.
                async with httpx.AsyncClient(
                    transport=transport,
                    base_url=HERE,
                    follow_redirects=True,
                    cookies=looking.browser.cookies,
                ) as client:
                    found = await client.request(
                        asked.method,
                        path.removeprefix(RUNNING),
                        headers=sent,
                        content=asked.post_data_buffer,
                    )
                kept = {"content-type", "content-security-policy"}
                headers = {name: said for name, said in found.headers.items() if name in kept}
                await route.fulfill(status=found.status_code, headers=headers, body=found.content)

            await context.route("**/*", answer)
            try:
                yield await context.new_page()
            finally:
                await context.close()


ENTERS: Final = pages_of(load(), RUNNING)[0]


async def draw(folder: Path) -> list[Path]:
    """All of them, into this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    async with chromium() as browser:
        async with drawn(browser, SIZE, Appearance(theme="dark", suits="four")) as show:
            for name, state in dealing().items():
                made.append(await _picture(await show(state), folder / f"{name}.png"))
        async with reviewed(browser) as page:
            await page.goto(f"{HERE}/rounds/{REVIEWED}")
            made.append(await _picture(page, folder / "review.png", TOP))
    return made


async def _picture(page: Page, file: Path, clip: FloatRect | None = None) -> Path:
    await page.screenshot(path=file, animations="disabled", clip=clip)
    size = file.stat().st_size
    assert size <= MOST, f"{file.name} has {size} bytes, and {MOST} is the most"
    return file


if __name__ == "__main__":
    for one in asyncio.run(draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)):
        print(one)


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
ALIKE: Final = (
    "rounds-found",
    "rounds-none",
    "round-whole",
    "sign-in-again",
    "sign-in-wait",
    "error-no-page",
    "error-old-link",
    "report-wrong-time",
)
"""Pages with nothing that others do not have."""


async def wrong_in_review(
    windows: tuple[tuple[str, Appearance], ...], share: int, without: tuple[str, ...] = ()
) -> list[str]:
    """`share`: each page in so many of the windows, but those that are left out. With
    HOLECARD_ARTIFACTS the pictures are left in that folder."""
    found = []
    folder = artifacts()
    async with chromium() as browser:
        for number, (size, looks) in enumerate(windows):
            async with reviewed(browser, size, looks, bypass_csp=True) as page:
                for place, (name, comes) in enumerate(VIEWS.items()):
                    if name in without or (number - place) % len(windows) >= share:
                        continue
                    await comes(page)
                    failed = await page.get_by_role("heading", name=TEXTS("problem.title")).count()
                    assert bool(failed) == name.startswith("error"), name
                    where = f"{name} at {size}, {looks.theme}"
                    if folder is not None:
                        await page.screenshot(
                            path=folder / f"review-{name}.{size}.{looks.theme}.png",
                            animations="disabled",
                        )
                    found += [f"{where}: {one}" for one in await barred(page)]
                    found += [f"{where}: out of its plot: {one}" for one in await cut_names(page)]
                    if wide := await scrolls_sideways(page):
                        found.append(f"{where}: scrolls sideways, {wide}")
    return found
