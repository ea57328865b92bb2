"""HTTP server in the table's event loop: uvicorn without its signal handlers and sockets."""

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
"""Timeout in seconds for the head of a request, after the connection and after each response."""
SPARE_CONNECTIONS: Final = 32
"""Connections beyond the limit that get a 503; further ones are aborted."""
SEND_TIMEOUT: Final = 30.0
"""Timeout in seconds for a client that does not read."""


class HttpConnection(H11Protocol):
    """A connection with timeouts for clients that send no request, or read no response."""

    _asks: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (
            len(self.connections)
            > (self.limit_concurrency or SPARE_CONNECTIONS) + SPARE_CONNECTIONS
        ):
            transport.abort()  # file descriptors are needed for the record and ports
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
        """Start the timeout for the next request; partial data does not extend it."""
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
"""Maximum concurrent connections; more get a 503."""
MAX_PAGE_CONNECTIONS: Final = 640
"""The same for the pages: each browser uses several."""
SHUTDOWN_TIMEOUT: Final = 2
"""Timeout in seconds for running requests at the end."""
BACKLOG: Final = 64


class Server(uvicorn.Server):
    """Serves one application at listening sockets."""

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
        """Leave the signal handlers to the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    async def run_until_stopped(self) -> None:
        """Serve until stop() or cancellation."""
        try:
            await self.serve(self._at)
        finally:
            await self._over()

    def stop(self) -> None:
        """Accept no more connections, and end after SHUTDOWN_TIMEOUT."""
        self.should_exit = True

    async def _over(self) -> None:
        """Close all sockets, connections and tasks."""
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
