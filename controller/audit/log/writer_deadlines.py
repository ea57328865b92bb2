"""How long somebody on a loop waits for what comes in turn: one timer for all of them.

    there = Deadlines(loop, late)
    there.watch(answer, 60.0)          # late(answer) after a minute, unless it is done before
    there.look()                       # whenever some of them were answered

A timer for each would cost more than what it watches over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Deadlines(Generic[T]):
    """Of one loop, and to be used on it alone. All have the same patience, and are answered in the
    order in which they came."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, late: Callable[[asyncio.Future[T]], None]
    ) -> None:
        self.loop = loop
        self._late = late
        self._waiting: deque[tuple[float, asyncio.Future[T]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, answer: asyncio.Future[T], seconds: float) -> None:
        until = self.loop.time() + seconds
        self._waiting.append((until, answer))
        if self._timer is None:
            self._timer = self.loop.call_at(until, self._due)

    def look(self) -> None:
        """No timer stays behind where nobody waits."""
        waiting = self._waiting
        while waiting and waiting[0][1].done():
            waiting.popleft()
        if not waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        now = self.loop.time()
        waiting = self._waiting
        while waiting and (waiting[0][1].done() or waiting[0][0] <= now):
            _, answer = waiting.popleft()
            if not answer.done():
                self._late(answer)
        if waiting:
            self._timer = self.loop.call_at(waiting[0][0], self._due)
