"""HTTP in the loop of the table: uvicorn, which neither catches signals nor opens sockets here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_TIMEOUT: Final = 30
"""Seconds for the first line to the last of a request's head to come: after the connection, and
after each answer."""
SPARE_CONNECTIONS: Final = 32
"""Connections beyond the most at once, who are told to come later. Any more are told nothing."""
SEND_TIMEOUT: Final = 30.0
"""Seconds for what waits to be sent to become less."""


class HttpConnection(H11Protocol):
    """One. It has no deadline of its own for who asks nothing at all, or reads nothing."""

    _asks: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (
            len(self.connections)
            > (self.limit_concurrency or SPARE_CONNECTIONS) + SPARE_CONNECTIONS
        ):
            transport.abort()  # a file descriptor less that the record, or a port, may need
            return
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._asks)
        _cancel(self._reads)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._reads)
        self._reads = self.loop.call_later(SEND_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._reads)
        super().resume_writing()

    def _await_request(self) -> None:
        """What comes in between gives nobody more time."""
        _cancel(self._asks)
        self._asks = self.loop.call_later(IDLE_TIMEOUT, self._if_nothing_asked)

    def _if_nothing_asked(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


MAX_CONNECTIONS: Final = 128
"""At once; more are told to come later."""
MAX_PAGE_CONNECTIONS: Final = 640
"""The same for pages: each browser keeps a few."""
SHUTDOWN_TIMEOUT: Final = 2
"""Seconds for requests that are being answered at the end."""
BACKLOG: Final = 64


class Server(uvicorn.Server):
    """One application, at sockets that listen already."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        *,
        most: int = MAX_CONNECTIONS,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=HttpConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=most,
                backlog=BACKLOG,
                timeout_keep_alive=IDLE_TIMEOUT,
                timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )
        self._at = list(sockets)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are the whole process's, not ours."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    async def run_until_stopped(self) -> None:
        """Until stop(), or until it is cancelled."""
        try:
            await self.serve(self._at)
        finally:
            await self._over()

    def stop(self) -> None:
        """Nobody new is let in, and whoever is answered now has a moment."""
        self.should_exit = True

    async def _over(self) -> None:
        """Nothing of it is left, whatever has ended it."""
        for server in getattr(self, "servers", ()):
            server.close()
        left = list(self.server_state.tasks)
        for task in left:
            task.cancel()
        for connection in list(self.server_state.connections):
            transport = connection.transport
            if transport is not None:
                transport.abort()
        if left:
            await asyncio.wait(left, timeout=SHUTDOWN_TIMEOUT)
