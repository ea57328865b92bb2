"""Connections that are let go of when nothing comes over them, or nobody takes what is sent: there
are only so many, and whoever keeps one for nothing keeps it from others.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE: Final = 30
"""Seconds for the first line to the last of a request's head to come: after the connection, and
after each answer."""
SPARE: Final = 32
"""Connections beyond the most at once, who are told to come later. Any more are told nothing."""
STALLED: Final = 30.0
"""Seconds for what waits to be sent to become less."""


class Connection(H11Protocol):
    """One. It has no deadline of its own for who asks nothing at all, or reads nothing."""

    _asks: asyncio.TimerHandle | None = None
    _reads: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > (self.limit_concurrency or SPARE) + SPARE:
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
        self._reads = self.loop.call_later(STALLED, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._reads)
        super().resume_writing()

    def _await_request(self) -> None:
        """What comes in between gives nobody more time."""
        _cancel(self._asks)
        self._asks = self.loop.call_later(IDLE, self._if_nothing_asked)

    def _if_nothing_asked(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
