"""Verification of the whole record in the background: one run at a time, shown to all users."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Final

from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.notes import VerifierKey
from controller.audit.format.segments import DIRECTORY
from controller.audit.verify import VerifyProgress, VerifyReport, verify

_FEW: Final = 4
"""Segments that one process verifies faster than several can be started."""


class VerificationStatus(Struct, frozen=True):
    """The state of a run."""

    who: str
    running: bool
    progress: VerifyProgress | None
    report: VerifyReport | None
    problem: str = ""


class _Cancelled(Exception):
    """The run was cancelled."""


class VerificationRunner:
    def __init__(self, record: Path, table_key: VerifierKey | None, *, apart: bool = False) -> None:
        """`apart`: always in other processes, since a table runs in this one."""
        self._apart = apart
        self._record, self._table_key = record, table_key
        self._lock = Lock()
        self._ends = Event()
        self._thread: ThreadPoolExecutor | None = None
        self._work: Future[VerifyReport] | None = None
        self._who = ""
        self._progress: VerifyProgress | None = None

    def start(self, who: str) -> bool:
        """Start a run; False if one is running."""
        with self._lock:
            if self._ends.is_set() or (self._work is not None and not self._work.done()):
                return False
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="verify")
            self._who, self._progress = who, None
            self._work = self._thread.submit(self._verify)
            return True

    @property
    def run(self) -> VerificationStatus | None:
        """The last run, if there was one."""
        with self._lock:
            work, who, progress = self._work, self._who, self._progress
        if work is None:
            return None
        if not work.done():
            return VerificationStatus(who, True, progress, None)
        problem = work.exception()
        if problem is None:
            return VerificationStatus(who, False, progress, work.result())
        if isinstance(problem, RecordProblem | BrokenExecutor | OSError | _Cancelled):
            return VerificationStatus(who, False, progress, None, str(problem))
        raise problem

    def wait(self, seconds: float) -> None:
        """Wait for the run, up to this timeout."""
        if self._work is not None:
            self._work.exception(seconds)

    def end(self) -> None:
        """Cancel the run at its next segment."""
        self._ends.set()

    def close(self) -> None:
        """Cancel the run and wait for its thread."""
        self.end()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=True)

    def _verify(self) -> VerifyReport:
        return verify(
            self._record,
            table_key=self._table_key,
            jobs=_jobs(self._record, self._apart),
            on_progress=self._on_progress,
        )

    def _on_progress(self, step: VerifyProgress) -> None:
        self._progress = step
        if self._ends.is_set():
            raise _Cancelled("the review has ended")


def _jobs(record: Path, apart: bool) -> int:
    few = len(list((record / DIRECTORY).glob("0*.seg"))) <= _FEW
    cores = len(os.sched_getaffinity(0))
    if apart:
        return max(2, cores)
    return 1 if few else cores
