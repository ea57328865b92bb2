"""Calls from the threads of pages into the table's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.api.contract.errors import Problem
from controller.audit.errors import CannotWrite
from controller.table.loop import InputRejected, QueueFull, TableStopped

RECORD_TIMEOUT: Final = 10.0
"""Seconds until a call fails."""
_TODO: Final = "nobody looks without it: try again when the table's record goes on"
_T = TypeVar("_T")


class LoopBridge:
    """The running event loop. Create it there; run() is for other threads."""

    def __init__(self, record: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._record = record

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the loop and return its result. Raises CannotWrite if nothing can be
        recorded, or on timeout."""
        try:
            done = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop is closed
            work.close()
            raise self._cannot("the table has ended") from None
        try:
            return done.result(RECORD_TIMEOUT)
        except TimeoutError:
            done.cancel()
            raise self._cannot(f"nothing was recorded within {RECORD_TIMEOUT:g} s") from None
        except CancelledError:
            raise self._cannot("the table is closing") from None
        except (TableStopped, QueueFull, InputRejected) as problem:
            raise self._cannot(str(problem)) from None
        except Problem as problem:
            raise self._cannot(problem.body.what) from None

    def _cannot(self, why: str) -> CannotWrite:
        return CannotWrite(self._record, f"takes nothing now: {why}", _TODO)
