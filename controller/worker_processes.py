"""Worker processes: all are started first, ended with their parent, and interrupted by it only."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TypeVar

from controller.errors import EXIT_BROKEN, CommandError

T = TypeVar("T")
R = TypeVar("R")


class WorkerLost(CommandError):
    """A worker process was killed: by a user, or by a system without memory."""

    exit_code = EXIT_BROKEN

    def __str__(self) -> str:
        return "a worker process was killed, perhaps for lack of memory; use fewer --jobs"


@contextmanager
def worker_processes(
    jobs: int, setup: Callable[..., None] | None = None, *values: object
) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes, each set up with `values`; all have ended on exit.
    Raises WorkerLost."""
    begin = partial(_begin, setup, *values)
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=begin)
    try:
        with _interrupts_held_back():
            for _ in range(jobs):
                pool.submit(_ready)
        yield pool
    except BrokenProcessPool:
        raise WorkerLost from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    pool: ProcessPoolExecutor, work: Callable[[T], R], items: Iterable[T], ahead: int
) -> Iterator[R]:
    """Yields the results in the order of the items; at most `ahead` are submitted in advance."""
    submitted: deque[Future[R]] = deque()
    for item in items:
        submitted.append(pool.submit(work, item))
        if len(submitted) >= ahead:
            yield submitted.popleft().result()
    while submitted:
        yield submitted.popleft().result()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Blocks SIGINT, also in processes started meanwhile. The parent handles it on exit and stops
    the workers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in a worker process ----------------------------------------------------------------------


def _begin(setup: Callable[..., None] | None, *values: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if setup is not None:
        setup(*values)


def _end_with_parent() -> None:
    """Exits if the parent process is killed, since a worker would wait for work forever."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _ready() -> None:
    """Does nothing: submitting it starts a process."""
