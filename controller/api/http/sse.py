"""The table as it changes: server-sent events, of which only the newest counts.

Each reader is sent what stands when there is room for it; what it was too slow for it never sees.
So nobody's line is a queue, and nobody waits for anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final, Generic, TypeVar

import structlog
from starlette.types import Receive, Scope, Send

from controller.api.contract.errors import Problem
from controller.api.service import CachedView, ScreenRegistry, ScreenSession, ServedTable, ViewCache

MAX_STREAMS: Final = 32
"""Streams at once."""
MAX_STREAMS_OF_SCREEN: Final = 4
"""Of one screen."""
HEARTBEAT: Final = 15.0
"""Seconds without a change, after which a word shows that all is well."""
POLL_INTERVAL: Final = 1.0
"""Seconds after which it is looked for changes that nobody tells of: how a device stands while
nothing can be recorded."""
SEND_TIMEOUT: Final = 30.0
"""Seconds for a reader to take what it was sent."""
BEAT: Final = b": all is well\n\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]

_T = TypeVar("_T")
_log: Final = structlog.get_logger("api")


class TableStreams:
    """All of one table."""

    def __init__(self, served: ServedTable, views: ViewCache, screens: ScreenRegistry) -> None:
        self._served = served
        self._views = views
        self._screens = screens
        self._open = 0

    def __len__(self) -> int:
        return self._open

    def begin(self, screen: ScreenSession) -> TableStream:
        """An answer that goes on. Problem where there is no room, or no time."""
        if self._served.stopping.is_set():
            raise Problem(503, "closing", "the table is closing")
        if self._open >= MAX_STREAMS or screen.streams >= MAX_STREAMS_OF_SCREEN:
            what = f"there are {MAX_STREAMS} streams, or {MAX_STREAMS_OF_SCREEN} of this screen"
            raise Problem(429, "streams_full", what, "one less", wait=5)
        return TableStream(self, screen)

    async def run(self, screen: ScreenSession, receive: Receive, send: Send) -> None:
        """One, to its end: the reader's, the screen's, or the table's."""
        news = asyncio.Event()
        self._open += 1
        with ExitStack() as last:
            last.callback(self._close)
            last.enter_context(self._screens.streaming(screen))
            last.enter_context(self._views.subscribe(news.set))
            await EventStream(
                f"stream of {screen.name}",
                news,
                self._served.stopping,
                alive=lambda: self._screens.is_open(screen),
                newest=self._views.now,
                event=event,
                look=POLL_INTERVAL,
            ).run(receive, send)

    def _close(self) -> None:
        self._open -= 1


class TableStream:
    """The answer to a request for one."""

    def __init__(self, streams: TableStreams, screen: ScreenSession) -> None:
        self._streams = streams
        self._screen = screen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.run(self._screen, receive, send)


def event(seen: CachedView) -> bytes:
    return b"event: table\nid: %d\ndata: %s\n\n" % (seen.view.record.seq, seen.body)


class EventStream(Generic[_T]):
    """A reader's: what is newest is sent whenever it is another one, and a word now and then."""

    def __init__(
        self,
        name: str,
        news: asyncio.Event,
        stopping: asyncio.Event,
        *,
        alive: Callable[[], bool],
        newest: Callable[[], _T],
        event: Callable[[_T], bytes],
        look: float,
    ) -> None:
        """`news`: set by who tells of it; `newest`: the same one while nothing has changed; `look`:
        seconds after which it is looked for without news."""
        self._name = name
        self._news = news
        self._stopping = stopping
        self._alive = alive
        self._newest = newest
        self._event = event
        self._look = look

    async def run(self, receive: Receive, send: Send) -> None:
        """To its end: its reader's, the table's, or when it is not alive any more."""
        watching = [
            asyncio.create_task(_gone(receive), name=f"{self._name}: its reader"),
            asyncio.create_task(self._stopping.wait(), name=self._name),
        ]
        with ExitStack() as last:
            for task in watching:
                task.add_done_callback(lambda task: self._news.set())
                last.callback(task.cancel)
            try:
                await self._send(watching, send)
            except _Stuck as problem:
                _log.info("a stream was left", stream=self._name, why=str(problem))
        await asyncio.wait(watching)

    async def _send(self, watching: Sequence[asyncio.Task[object]], send: Send) -> None:
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        sent: _T | None = None
        at = loop.time()
        while self._alive() and not any(task.done() for task in watching):
            self._news.clear()
            newest = self._newest()
            if newest is not sent:
                await _give(send, self._event(newest))
                sent, at = newest, loop.time()
            elif loop.time() - at >= HEARTBEAT:
                await _give(send, BEAT)
                at = loop.time()
            await wait_for(self._news, self._look)
        if not watching[0].done():
            await _give(send, b"", more=False)


async def wait_for(news: asyncio.Event, seconds: float) -> bool:
    """Whether there is any so soon."""
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True


class _Stuck(Exception):
    """The reader does not read."""


async def _give(send: Send, data: bytes, *, more: bool = True) -> None:
    try:
        async with asyncio.timeout(SEND_TIMEOUT):
            await send({"type": "http.response.body", "body": data, "more_body": more})
    except TimeoutError:
        raise _Stuck(f"nothing was read for {SEND_TIMEOUT:g} s") from None


async def _gone(receive: Receive) -> None:
    """Returns when the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
