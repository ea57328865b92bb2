"""The table as it changes: server-sent events, of which only the newest counts.

Each reader is sent what stands when there is room for it; what it was too slow for it never sees.
So nobody's line is a queue, and nobody waits for anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import structlog
from starlette.types import Receive, Scope, Send

from controller.api.errors import Problem
from controller.api.looking import Looking, Seen
from controller.api.screens import Screen, Screens
from controller.api.served import Serving

MOST: Final = 32
"""Streams at once."""
MOST_OF_ONE: Final = 4
"""Of one screen."""
HEARTBEAT: Final = 15.0
"""Seconds without a change, after which a word shows that all is well."""
LOOK: Final = 1.0
"""Seconds after which it is looked for changes that nobody tells of: how a device stands while
nothing can be recorded."""
STUCK: Final = 30.0
"""Seconds for a reader to take what it was sent."""
BEAT: Final = b": all is well\n\n"
HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]

_log: Final = structlog.get_logger("api")


class Streams:
    """All of one table."""

    def __init__(self, served: Serving, looking: Looking, screens: Screens) -> None:
        self._served = served
        self._looking = looking
        self._screens = screens
        self._open = 0

    def __len__(self) -> int:
        return self._open

    def begin(self, screen: Screen) -> Stream:
        """An answer that goes on. Problem where there is no room, or no time."""
        if self._served.stopping.is_set():
            raise Problem(503, "closing", "the table is closing")
        if self._open >= MOST or screen.streams >= MOST_OF_ONE:
            what = f"there are {MOST} streams, or {MOST_OF_ONE} of this screen"
            raise Problem(429, "streams_full", what, "one less", wait=5)
        return Stream(self, screen)

    async def run(self, screen: Screen, receive: Receive, send: Send) -> None:
        """One, to its end: the reader's, the screen's, or the table's."""
        news = asyncio.Event()
        watching = [
            asyncio.create_task(gone(receive), name=f"stream of {screen.name}: its reader"),
            asyncio.create_task(self._served.stopping.wait(), name=f"stream of {screen.name}"),
        ]
        self._open += 1
        with ExitStack() as last:
            last.callback(self._close)
            last.enter_context(self._screens.streaming(screen))
            last.enter_context(self._looking.telling(news.set))
            for task in watching:
                task.add_done_callback(lambda task: news.set())
                last.callback(task.cancel)
            try:
                await self._send(screen, news, watching, send)
            except Stuck as problem:
                _log.info("a stream was left", screen=screen.name, why=str(problem))
        await asyncio.wait(watching)

    def _close(self) -> None:
        self._open -= 1

    async def _send(
        self,
        screen: Screen,
        news: asyncio.Event,
        watching: Sequence[asyncio.Task[object]],
        send: Send,
    ) -> None:
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        sent: Seen | None = None
        at = loop.time()
        while self._screens.is_open(screen) and not any(task.done() for task in watching):
            news.clear()
            seen = self._looking.now()
            if seen is not sent:
                await give(send, event(seen))
                sent, at = seen, loop.time()
            elif loop.time() - at >= HEARTBEAT:
                await give(send, BEAT)
                at = loop.time()
            try:
                async with asyncio.timeout(LOOK):
                    await news.wait()
            except TimeoutError:
                continue
        if not watching[0].done():
            await give(send, b"", more=False)


class Stream:
    """The answer to a request for one."""

    def __init__(self, streams: Streams, screen: Screen) -> None:
        self._streams = streams
        self._screen = screen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._streams.run(self._screen, receive, send)


def event(seen: Seen) -> bytes:
    return b"event: table\nid: %d\ndata: %s\n\n" % (seen.view.record.seq, seen.body)


class Stuck(Exception):
    """The reader does not read."""


async def give(send: Send, data: bytes, *, more: bool = True) -> None:
    try:
        async with asyncio.timeout(STUCK):
            await send({"type": "http.response.body", "body": data, "more_body": more})
    except TimeoutError:
        raise Stuck(f"nothing was read for {STUCK:g} s") from None


async def gone(receive: Receive) -> None:
    """Returns when the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
