"""HTTP server in the table's event loop: uvicorn without its signal handlers and listeners."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import h11
import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from controller.api.http.connections import (
    ConnectionLimits,
    ConnectionTable,
    OpenConnection,
    Rank,
    no_session,
)
from controller.api.http.listener import Listener

HEAD_TIMEOUT: Final = 5.0
"""Seconds from a connection, and later from the first byte of a request, to the end of its head."""
IDLE_TIMEOUT: Final = 30.0
"""Seconds from a response to the first byte of the next request."""
BODY_TIMEOUT: Final = 15.0
"""Seconds for the body of a request; applications have shorter limits, and answer with them."""
SEND_TIMEOUT: Final = 30.0
"""Timeout in seconds for a client that does not read."""
SHUTDOWN_TIMEOUT: Final = 2
"""Timeout in seconds for running requests at the end."""
MAX_HEAD: Final = 32 * 1024
"""Bytes of a request's head."""
LIMITS: Final = ConnectionLimits(total=128, per_address=64)

_ERRORS: Final = logging.getLogger("uvicorn.error.connections")
"""Without warnings: one for each invalid request would let a stranger fill the log."""
_ERRORS.setLevel(logging.ERROR)

FindSession: TypeAlias = Callable[[Scope], Rank]
"""Finds the session of a request, without marking it as used."""


class HttpConnection(H11Protocol):
    """A connection with timeouts for clients that send or read slowly."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: Any,
        lifespan: dict[str, Any],
        entry: OpenConnection,
        connections: ConnectionTable,
        find_session: FindSession,
    ) -> None:
        """`state`: uvicorn's state of the server; `lifespan`: of the application."""
        super().__init__(config, state, lifespan)
        self.logger = _ERRORS
        self._entry = entry
        self._table = connections
        self._find_session = find_session
        self._receives: asyncio.TimerHandle | None = None
        """The timeout for the head or body of a request."""
        self._reads: asyncio.TimerHandle | None = None
        self._waits = False
        """Whether no byte of the next request has arrived."""
        self._noted: object = None
        """The scope of the request that was noted last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._entry.close = transport.abort
        self._receive_within(HEAD_TIMEOUT)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._receives)
        _cancel(self._reads)
        self._table.release(self._entry)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waits:
            self._waits = False
            self._receive_within(HEAD_TIMEOUT)
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not self._noted:
            self._noted = self.scope
            self._entry.rank = self._find_session(dict(self.scope))
            self._receive_within(BODY_TIMEOUT)

    def send_400_response(self, msg: str) -> None:
        self._table.count_invalid(self._entry)
        super().send_400_response(msg)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        cycle: Any = self.cycle
        if cycle.response_complete:  # otherwise a pipelined request has begun
            begun, _ = self.conn.trailing_data
            self._waits = not begun
            self._receive_within(HEAD_TIMEOUT if begun else IDLE_TIMEOUT)

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._reads)
        self._reads = self.loop.call_later(SEND_TIMEOUT, self._close_slow)

    def resume_writing(self) -> None:
        _cancel(self._reads)
        super().resume_writing()

    def _receive_within(self, seconds: float) -> None:
        """Start the timeout for the head or body of a request; partial data does not extend it."""
        _cancel(self._receives)
        self._receives = self.loop.call_later(seconds, self._if_nothing_received)

    def _if_nothing_received(self) -> None:
        """A request that is complete is limited by its application, and by SEND_TIMEOUT."""
        cycle: Any = self.cycle  # None before the first request
        idle = cycle is None or cycle.response_complete
        if idle and self._waits:
            self.transport.abort()
        elif idle or self.conn.their_state is h11.SEND_BODY:
            self._close_slow()

    def _close_slow(self) -> None:
        self._table.close_slow(self._entry)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Server(uvicorn.Server):
    """Serves one application at listening sockets."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        *,
        connections: ConnectionTable | None = None,
        find_session: FindSession = lambda scope: no_session,
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
                timeout_keep_alive=round(2 * IDLE_TIMEOUT),  # HttpConnection is earlier
                timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
                h11_max_incomplete_event_size=MAX_HEAD,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )
        self._at = list(sockets)
        if connections is None:  # an empty one is false
            connections = ConnectionTable("http", LIMITS)
        self.connections = connections
        self._find_session = find_session
        self._listeners: list[Listener] = []
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers to the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept with listeners of ours in place of uvicorn's."""
        self._listeners = [
            Listener(sock, self.connections, self._protocol, self.config.ssl) for sock in self._at
        ]
        self.servers: list[Any] = list(self._listeners)  # uvicorn closes them
        for one in self._listeners:
            one.start()
        self.started = True
        self.answering.set()

    def _protocol(self, entry: OpenConnection) -> HttpConnection:
        return HttpConnection(
            self.config,
            self.server_state,
            self.lifespan.state,
            entry,
            self.connections,
            self._find_session,
        )

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
        for listener in self._listeners:
            listener.close()
        left = list(self.server_state.tasks)
        for task in left:
            task.cancel()
        self.connections.close_all()
        if left:
            await asyncio.wait(left, timeout=SHUTDOWN_TIMEOUT)
        for listener in self._listeners:
            await listener.wait_closed()
