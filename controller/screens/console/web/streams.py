"""What browsers are shown: rendered once for each change and each kind of viewer, and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from controller.api.contract.view import View
from controller.api.http import POLL_INTERVAL, EventStream, Listeners, latest, wait_for
from controller.api.service import CachedView, ScreenSession, TableApi
from controller.procedure.model.game import Game
from controller.screens.common.templates import Pages
from controller.screens.console.view import Viewer, console_of
from controller.screens.console.web.sessions import Browser, Browsers


class RenderedPage(NamedTuple):
    """The table as HTML, and the instruction as a screen reader says it."""

    html: str
    say: str


class PageRenderer(Protocol):
    """Renders views."""

    def picture(self, view: View, viewer: Viewer) -> RenderedPage:
        """Render what a change replaces."""

    def page(
        self, view: View, viewer: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        """Render the whole page. `signed`: roles and names of who is signed in at the screen."""


class ConsoleRenderer:
    """Renders the dealer's console."""

    def __init__(self, pages: Pages, game: Game) -> None:
        self._pages = pages
        self._game = game

    def picture(self, view: View, viewer: Viewer) -> RenderedPage:
        c = console_of(view, self._game, viewer, self._pages.texts)
        return RenderedPage(self._pages.text("console/table.html", c=c), c.say)

    def page(
        self, view: View, viewer: Viewer, browser: Browser, signed: tuple[tuple[str, str], ...]
    ) -> str:
        return self._pages.text(
            "console/page.html",
            c=console_of(view, self._game, viewer, self._pages.texts),
            secret=browser.secret,
            appearance=browser.appearance,
            screen=browser.screen.name,
            signed=signed,
        )


class PageUpdate(Struct, frozen=True):
    """The data of an event, as the page's script reads it."""

    seq: int
    html: str
    say: str
    controls: bool
    signed: str
    """Roles that are signed in at the screen."""


class RenderCache:
    """The encoded update of one table for each kind of viewer."""

    def __init__(self, api: TableApi, render: Callable[[View, Viewer], RenderedPage]) -> None:
        self._api = api
        self._render = render
        self._seen: CachedView | None = None
        self._events: dict[Viewer, bytes] = {}

    def viewer(self, screen: ScreenSession) -> Viewer:
        desk = self._api.served.desk
        return Viewer(
            controls=screen.signed_in(desk, "dealer") is not None,
            tests=screen.signed_in(desk, "technician") is not None,
        )

    def now(self, screen: ScreenSession) -> bytes:
        """Returns the current update as an event; the same object while nothing has changed."""
        seen, viewer = self._api.views.now(), self.viewer(screen)
        if seen is not self._seen:
            self._seen, self._events = seen, {}
        found = self._events.get(viewer)
        if found is None:
            made = self._render(seen.view, viewer)
            seq = seen.view.seq
            update = PageUpdate(seq, made.html, made.say, viewer.controls, viewer.signed)
            data = msgspec.json.encode(update)
            found = self._events[viewer] = b"event: table\nid: %d\ndata: %s\n\n" % (seq, data)
        return found


MAX_STREAMS: Final = 256
MAX_STREAMS_OF_BROWSER: Final = 4
PAUSE: Final = 0.04
"""Seconds from a change to its rendering. Changes in between are in the same one."""
BATCH: Final = 4
"""Browsers that are notified before the event loop does something else."""


class BrowserStreams:
    """The console's streams of one table.

    Browsers are notified a moment after programs, a few at a time, so that a card that arrives in
    the meantime waits for a few of them only."""

    def __init__(self, api: TableApi, browsers: Browsers, cache: RenderCache) -> None:
        self._api = api
        self._browsers = browsers
        self._cache = cache
        self.listeners = Listeners(MAX_STREAMS, api.served.stopping)
        self._changed = asyncio.Event()
        api.views.subscribe(self._changed.set)

    def open(self, browser: Browser) -> EventStream:
        """Raises Problem if there are too many streams, or the table is closing."""
        screen = browser.screen
        self.listeners.check(screen.streams, MAX_STREAMS_OF_BROWSER, "browser", one_each=True)
        return EventStream(
            f"pages of {screen.name}",
            self.listeners,
            latest(lambda: self._cache.now(screen), bytes),
            alive=lambda: self._browsers.alive(browser),
            open_while=lambda: self._api.screens.streaming(screen),
        )

    async def run(self) -> None:
        """Notify the streams of changes until cancelled."""
        sent: CachedView | None = None
        while True:
            changed = await wait_for(self._changed, POLL_INTERVAL)
            self._changed.clear()
            if not len(self.listeners):
                continue
            if changed:
                await asyncio.sleep(PAUSE)
            # The state of a device may change without a notification while nothing is recorded.
            seen = self._api.views.now()
            if changed or seen is not sent:
                sent = seen
                await self._notify()

    async def _notify(self) -> None:
        wakes = self.listeners.wakes
        for start in range(0, len(wakes), BATCH):
            for wake in wakes[start : start + BATCH]:
                wake.set()
            await asyncio.sleep(0)  # the streams send
            await asyncio.sleep(0)  # the loop handles other input
