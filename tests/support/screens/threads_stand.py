"""Threads where time is simulated: it stands still while one works, and goes on while it waits for
the loop. So pages that are made in threads can be asked, and each run is the same."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
import pytest

from controller.screens.review.source import LoopBridge
from tests.support.drivers.simulated import SimulatedLoop, _Jumping

_T = TypeVar("_T")
_SOON: Final = 0.5
"""Seconds until it is looked again whether a thread still works; what it says comes at once."""


@contextmanager
def threads_stand() -> Iterator[None]:
    """For the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    working = 0
    jumps = _Jumping.select
    through = LoopBridge.run

    def select(selector: _Jumping, timeout: float | None = None) -> Any:
        if working and timeout != 0:
            return selectors.SelectSelector.select(selector, _SOON)
        return jumps(selector, timeout)

    async def asked(work: Coroutine[Any, Any, _T]) -> _T:
        nonlocal working
        working -= 1
        try:
            return await work
        finally:
            working += 1

    def goes_through(one: LoopBridge, work: Coroutine[Any, Any, _T]) -> _T:
        return through(one, asked(work))

    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patched:

        async def run_sync(work: Callable[..., _T], *values: Any, **_: Any) -> _T:
            nonlocal working
            working += 1
            try:
                return await loop.run_in_executor(pool, partial(work, *values))
            finally:
                working -= 1

        patched.setattr(_Jumping, "select", select)
        patched.setattr(LoopBridge, "run", goes_through)
        patched.setattr(anyio.to_thread, "run_sync", run_sync)
        yield
