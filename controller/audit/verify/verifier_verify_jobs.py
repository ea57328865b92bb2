"""Segments verified in several processes, none of which stays behind whatever happens.

Processes are spawned: forking one that has threads is unsafe, and a fork server stays behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final

from controller.audit.verify.facts import Verified, Wanted
from controller.audit.verify.segment import verify_segment

AHEAD: Final = 3
"""Segments that are on their way, for each process."""


def verified(
    record: Path, numbers: Sequence[int], last: int, wanted: Wanted, jobs: int
) -> Generator[Verified]:
    """Each segment's, in order. `last`: that which a write that was cut off may stand behind."""
    if jobs == 1 or len(numbers) < 2:
        for number in numbers:
            yield verify_segment(record, number, number == last, wanted)
        return
    with _workers(min(jobs, len(numbers))) as pool:
        flying: deque[Future[Verified]] = deque()
        for number in numbers:
            flying.append(pool.submit(verify_segment, record, number, number == last, wanted))
            if len(flying) >= AHEAD * jobs:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()


@contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
    try:
        with _interrupts_held_back():
            for _ in range(jobs):
                pool.submit(_ready)
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started in here never see the terminal's interrupt: it is for their parent, which
    takes it when it leaves, and tells them to stop."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a worker process ----------------------------------------------------------------------


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed tells its workers nothing: they would wait for ever."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _ready() -> None:
    """Nothing to do: handing it out starts a process."""
