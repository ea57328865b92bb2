"""The console's streams: the table as browsers see it change.

Browsers are notified a moment after programs, a few at a time, so that a card that arrives in the
meantime waits for a few of them only.
"""

from __future__ import annotations

import asyncio
from typing import Final

from controller.api.http import POLL_INTERVAL, EventStream, Listeners, latest, wait_for
from controller.api.service import CachedView, TableApi
from controller.screens.console.web.render_cache import RenderCache
from controller.screens.console.web.sessions import Browser, Browsers

MAX_STREAMS: Final = 256
MAX_STREAMS_OF_BROWSER: Final = 4
PAUSE: Final = 0.04
"""Seconds from a change to its rendering. Changes in between are in the same one."""
BATCH: Final = 4
"""Browsers that are notified before the event loop does something else."""


class BrowserStreams:
    """The console's streams of one table."""

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
