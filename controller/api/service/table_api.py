"""The API's state for one table: screens, cached views, running requests, surveillance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

from controller.api.contract.errors import Problem
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenRegistry
from controller.api.service.surveillance import SurveillanceLog
from controller.api.service.views import ViewCache

TIMEOUT: Final = 30.0
"""Seconds until a client gets 503; its request continues."""
MAX_TASKS: Final = 128
"""Requests that may run at once."""

_log: Final = structlog.get_logger("api")
_T = TypeVar("_T")


class ShieldedTasks:
    """Runs requests to completion even if the client disconnects, so that no act is left half done.

    At most MAX_TASKS run at once. A client gets 503 after the timeout while its task continues."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return the result. Raises Problem if too many tasks run, or on timeout."""
        if len(self._tasks) >= MAX_TASKS:
            work.close()
            raise Problem(429, "busy", "too much is asked at once", wait=1)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        done, _ = await asyncio.wait({task}, timeout=self._timeout)
        if not done:
            raise Problem(
                503,
                "no_answer",
                f"no answer within {self._timeout:g} s: it may still be done, so look first",
                "GET /api/v1/table shows whether it was",
            )
        return task.result()

    def _done(self, task: asyncio.Task[Any]) -> None:
        """Log the exception of a task even if no client waits for it any more."""
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not isinstance(problem, Problem):
            _log.error("a fault", exc_info=problem)


class TableApi:
    """Everything that requests to one table share."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds, for idle timeouts."""
        self.served = served
        self.screens = ScreenRegistry(clock)
        self.views = ViewCache(served)
        self.tasks = ShieldedTasks()
        self.surveillance = SurveillanceLog(served, clock)
