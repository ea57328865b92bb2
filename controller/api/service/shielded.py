"""What is begun goes on to its end, whoever waits for it: nobody's act is half done because their
cable was touched."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import structlog

from controller.api.contract.errors import Problem

TIMEOUT: Final = 30.0
"""Seconds for an answer."""
MAX_TASKS: Final = 128
"""Things that may be under way."""

_log: Final = structlog.get_logger("api")
_T = TypeVar("_T")


class ShieldedTasks:
    """All that is under way."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What comes of it. Problem where that takes too long; it stands or falls by itself."""
        if len(self._tasks) >= MAX_TASKS:
            work.close()
            raise Problem(429, "busy", "too much is asked at once", wait=1)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        done, _ = await asyncio.wait({task}, timeout=self._timeout)
        if not done:
            what = f"no answer within {self._timeout:g} s: it may still be done, so look first"
            raise Problem(503, "no_answer", what, "GET /api/v1/table shows whether it was")
        return task.result()

    def _over(self, task: asyncio.Task[Any]) -> None:
        """Also where nobody waits for it any more."""
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not isinstance(problem, Problem):
            _log.error("a fault", exc_info=problem)
