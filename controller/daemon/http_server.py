"""HTTP in the loop of the table: uvicorn, which neither catches signals nor opens sockets here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from controller.daemon.http_server_connections import IDLE, Connection

MOST_CONNECTIONS: Final = 128
"""At once; more are told to come later."""
MOST_BROWSING: Final = 640
"""The same for pages: each browser keeps a few."""
END_WAIT: Final = 2
"""Seconds for requests that are being answered at the end."""
BACKLOG: Final = 64


class Server(uvicorn.Server):
    """One application, at sockets that listen already."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        *,
        most: int = MOST_CONNECTIONS,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=most,
                backlog=BACKLOG,
                timeout_keep_alive=IDLE,
                timeout_graceful_shutdown=END_WAIT,
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
            await asyncio.wait(left, timeout=END_WAIT)
