"""The table as browsers see it change: server-sent events, of which only the newest counts.

A change is told to browsers a moment after it was told to programs, and to some of them at a time,
so that a card that comes meanwhile waits for no more than a few.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from operator import attrgetter
from typing import Final

from starlette.types import Receive, Scope, Send

from controller.api.contract.errors import Problem
from controller.api.http import HEARTBEAT, POLL_INTERVAL, EventStream, TableApi, wait_for
from controller.api.service import CachedView
from controller.screens.console.web.render_cache import RenderCache
from controller.screens.console.web.sessions import Browser, Browsers

MAX_STREAMS: Final = 256
"""Streams at once."""
MAX_STREAMS_OF_BROWSER: Final = 4
"""Of one browser."""
PAUSE: Final = 0.04
"""Seconds from a change to its picture. What changes meanwhile is in the same one."""
TOGETHER: Final = 4
"""Browsers that are told before the loop does something else."""


class BrowserStreams:
    """All of one table."""

    def __init__(self, api: TableApi, browsers: Browsers, pictures: RenderCache) -> None:
        self._api = api
        self._browsers = browsers
        self._pictures = pictures
        self._readers: list[asyncio.Event] = []

    def __len__(self) -> int:
        return len(self._readers)

    def begin(self, browser: Browser) -> BrowserStream:
        """An answer that goes on. Problem where there is no room, or no time."""
        if self._api.served.stopping.is_set():
            raise Problem(503, "closing", "the table is closing")
        mine = browser.screen.streams
        full = len(self._readers) >= MAX_STREAMS and mine > 0  # each browser may have one
        if full or mine >= MAX_STREAMS_OF_BROWSER:
            what = f"there are {MAX_STREAMS} streams, or {MAX_STREAMS_OF_BROWSER} of this browser"
            raise Problem(429, "streams_full", what, "one less", wait=5)
        return BrowserStream(self, browser)

    async def tell(self) -> None:
        """Tells whoever looks, until it is cancelled."""
        news = asyncio.Event()
        told: CachedView | None = None
        with self._api.views.subscribe(news.set):
            while True:
                told_of = await wait_for(news, POLL_INTERVAL)
                news.clear()
                if not self._readers:
                    continue
                if told_of:
                    await asyncio.sleep(PAUSE)
                # Nobody tells how a device stands while nothing can be recorded.
                seen = self._api.views.now()
                if told_of or seen is not told:
                    told = seen
                    await self._wake()

    async def _wake(self) -> None:
        readers = list(self._readers)
        for start in range(0, len(readers), TOGETHER):
            for one in readers[start : start + TOGETHER]:
                one.set()
            await asyncio.sleep(0)  # they send now
            await asyncio.sleep(0)  # and what came from elsewhere is taken

    async def run(self, browser: Browser, receive: Receive, send: Send) -> None:
        """One, to its end: the reader's, the session's, or the table's."""
        news, screen = asyncio.Event(), browser.screen
        self._readers.append(news)
        with ExitStack() as last:
            last.callback(self._left, news)
            last.enter_context(self._browsers.streaming(browser))
            await EventStream(
                f"pages of {screen.name}",
                news,
                self._api.served.stopping,
                alive=lambda: self._browsers.alive(browser),
                newest=lambda: self._pictures.now(self._pictures.here(screen)),
                event=attrgetter("event"),
                look=HEARTBEAT,
            ).run(receive, send)

    def _left(self, news: asyncio.Event) -> None:
        # Events are equal only where they are the same one.
        self._readers.remove(news)


class BrowserStream:
    """The answer to a request for one."""

    def __init__(self, streams: BrowserStreams, browser: Browser) -> None:
        self._streams = streams
        self._browser = browser

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.run(self._browser, receive, send)
