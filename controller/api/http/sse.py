"""Server-sent events: one generator for all streams, and the stream of the API.

A reader has no queue. It is sent the latest value when the connection has capacity; the values in
between are skipped. So a slow reader delays no other one and takes no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Final, TypeAlias, TypeVar

import structlog
from starlette.types import Receive, Scope, Send

from controller.api.contract.errors import Problem
from controller.api.service import CachedView, ScreenSession, TableApi

MAX_STREAMS: Final = 32
"""Open streams of the API."""
MAX_STREAMS_OF_SCREEN: Final = 4
HEARTBEAT: Final = 15.0
"""Seconds without an event until a comment is sent."""
POLL_INTERVAL: Final = 1.0
"""Seconds between two checks for changes without a notification: the state of a device while
nothing can be recorded."""
SEND_TIMEOUT: Final = 30.0
"""Seconds for a reader to accept what is sent; then its stream is closed."""
BEAT: Final = b": all is well\n\n"
_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]

_T = TypeVar("_T")
_log: Final = structlog.get_logger("api")
Pending: TypeAlias = Callable[[], Awaitable[bytes]]
"""Returns the encoded events to send now; b"" without new events."""


class Listeners:
    """The open streams of one kind: counted, limited, and woken by notify()."""

    def __init__(self, limit: int, stopping: asyncio.Event | None = None) -> None:
        """`stopping`: set when all streams are to end."""
        self.limit = limit
        self.stopping = stopping or asyncio.Event()
        self._wakes: list[asyncio.Event] = []

    def __len__(self) -> int:
        return len(self._wakes)

    @property
    def wakes(self) -> tuple[asyncio.Event, ...]:
        """An event for each open stream."""
        return tuple(self._wakes)

    @property
    def full(self) -> bool:
        return len(self._wakes) >= self.limit

    def check(self, mine: int, limit: int, whose: str, *, one_each: bool = False) -> None:
        """Raises Problem if no stream may be opened for a client that has `mine` of at most
        `limit`. `one_each`: each client may have one even if the streams are full."""
        if self.stopping.is_set():
            raise Problem(503, "closing", "the table is closing")
        if (self.full and not (one_each and mine == 0)) or mine >= limit:
            raise Problem(
                429,
                "streams_full",
                f"there are {self.limit} streams, or {limit} of this {whose}",
                "one less",
                wait=5,
            )

    def notify(self) -> None:
        for wake in self._wakes:
            wake.set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        wake = asyncio.Event()
        self._wakes.append(wake)
        try:
            yield wake
        finally:
            self._wakes.remove(wake)


def latest(newest: Callable[[], _T], encode: Callable[[_T], bytes]) -> Pending:
    """Latest value wins: the current value, if it differs from the one that was sent last."""
    sent: _T | None = None

    async def pending() -> bytes:
        nonlocal sent
        value = newest()
        if value is sent or value == sent:
            return b""
        sent = value
        return encode(value)

    return pending


class EventStream:
    """A response that sends events until its reader disconnects, the server stops, or `alive` is
    false."""

    def __init__(
        self,
        name: str,
        listeners: Listeners,
        pending: Pending,
        *,
        alive: Callable[[], bool] = lambda: True,
        interval: float = HEARTBEAT,
        batched: bool = False,
        open_while: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`interval`: seconds between two checks without a notification. `batched`: after events
        were sent, more may be pending. `open_while`: entered while the stream is open."""
        self._name = name
        self._listeners = listeners
        self._pending = pending
        self._alive = alive
        self._interval = interval
        self._batched = batched
        self._open_while = open_while

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as stack:
            wake = stack.enter_context(self._listeners.listening())
            stack.enter_context(self._open_while())
            ends = [
                asyncio.create_task(_disconnected(receive), name=f"{self._name}: its reader"),
                asyncio.create_task(self._listeners.stopping.wait(), name=self._name),
            ]
            with ExitStack() as cancelled:
                for task in ends:
                    task.add_done_callback(lambda task: wake.set())
                    cancelled.callback(task.cancel)
                try:
                    await self._send(wake, ends, send)
                except _NotReading as problem:
                    _log.info("a stream was left", stream=self._name, why=str(problem))
            await asyncio.wait(ends)

    async def _send(
        self, wake: asyncio.Event, ends: Sequence[asyncio.Task[object]], send: Send
    ) -> None:
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        at = loop.time()
        while self._alive() and not any(task.done() for task in ends):
            wake.clear()
            data = await self._pending()
            more = bool(data) and self._batched
            if not data and loop.time() - at >= HEARTBEAT:
                data = BEAT
            if data:
                await _send_part(send, data)
                at = loop.time()
            if not more:
                await wait_for(wake, self._interval)
        if not ends[0].done():
            await _send_part(send, b"", more=False)


async def wait_for(wake: asyncio.Event, seconds: float) -> bool:
    """Returns whether the event was set within this time."""
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return False
    return True


class _NotReading(Exception):
    """The reader does not accept data."""


async def _send_part(send: Send, data: bytes, *, more: bool = True) -> None:
    try:
        async with asyncio.timeout(SEND_TIMEOUT):
            await send({"type": "http.response.body", "body": data, "more_body": more})
    except TimeoutError:
        raise _NotReading(f"nothing was read for {SEND_TIMEOUT:g} s") from None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class TableStreams:
    """The API's streams of one table."""

    def __init__(self, api: TableApi) -> None:
        self._api = api
        self.listeners = Listeners(MAX_STREAMS, api.served.stopping)
        api.views.subscribe(self.listeners.notify)

    def open(self, screen: ScreenSession) -> EventStream:
        """Raises Problem if there are too many streams, or the table is closing."""
        api = self._api
        self.listeners.check(screen.streams, MAX_STREAMS_OF_SCREEN, "screen")
        return EventStream(
            f"stream of {screen.name}",
            self.listeners,
            latest(api.views.now, event),
            alive=lambda: api.screens.is_open(screen),
            interval=POLL_INTERVAL,
            open_while=lambda: api.screens.streaming(screen),
        )


def event(seen: CachedView) -> bytes:
    return b"event: table\nid: %d\ndata: %s\n\n" % (seen.view.record.seq, seen.body)
