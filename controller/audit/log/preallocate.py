"""Preallocates the next segment in a background thread while the current one fills."""

from __future__ import annotations

import errno
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as StillRunning
from pathlib import Path
from threading import Lock
from typing import Final

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.files import Disk
from controller.audit.format.segments import make_spare, spare_file

WAIT: Final = 30.0
"""Seconds to wait for a segment that is needed now."""
CLOSE_WAIT: Final = 10.0
"""Seconds to wait at shutdown for a segment that is being written."""
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
"""Errors after which preallocation is retried: nothing was lost."""


class SegmentPreallocator:
    """Preallocates one spare segment ahead. Thread-safe."""

    def __init__(self, disk: Disk, record: Path, size: int) -> None:
        self._disk = disk
        self._record = record
        self._size = size
        self.problem: OSError | None = None
        """Why the spare could not be made, until it is; None if it exists or is being made."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record: next segment")
        self._lock = Lock()
        """Guards the fields below."""
        self._made: Future[None] | None = None
        self._closed = False

    def prepare(self) -> None:
        """Start preallocation unless a spare exists or is being written; retries after NO_ROOM
        errors."""
        with self._lock:
            self._prepare()

    def _prepare(self) -> Future[None]:
        made = self._made
        if made is None or _no_room(made):
            made = self._made = self._thread.submit(self._make)
        return made

    def _make(self) -> None:
        try:
            make_spare(self._disk, self._record, self._size)
        except OSError as problem:
            self.problem = problem
            raise
        self.problem = None

    def retry(self) -> None:
        """Try again to make a spare that could not be made, before it is needed: after any error,
        since nothing that was acknowledged is in it."""
        with self._lock:
            made = self._made
            # A spare that was taken is not in `_made` until the next one is prepared.
            failed = made is not None and made.done() and self.problem is not None
            if failed and not self._closed:
                self._made = self._thread.submit(self._make)

    @property
    def ready(self) -> bool:
        """Whether the spare exists."""
        made = self._made
        return made is not None and made.done() and self.problem is None

    def take(self) -> Path:
        """The spare's file, waiting until it is ready. Raises DiskFull (retry later), LogFailed."""
        with self._lock:
            made = self._prepare()
        try:
            made.result(WAIT)
        except StillRunning:
            raise LogFailed(
                self._record,
                OSError(errno.ETIMEDOUT, f"the next segment took more than {WAIT:g} s"),
            ) from None
        except OSError as problem:
            if problem.errno not in NO_ROOM:
                raise LogFailed(self._record, problem) from problem
            what = f"there is no room for the next segment: {problem.strerror}"
            raise DiskFull(
                self._record, what, f"free {self._size >> 10} KiB on its disk; nothing is lost"
            ) from None
        with self._lock:
            self._made = None
        return spare_file(self._record)

    def close(self) -> None:
        """Stop the thread; a spare that is being written is abandoned."""
        with self._lock:
            self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._made is not None and not self._made.done():  # a cancelled future is done
            wait([self._made], CLOSE_WAIT)


def _no_room(made: Future[None]) -> OSError | None:
    """The error of a preallocation that may be retried."""
    if not made.done() or made.cancelled():
        return None
    problem = made.exception()
    return problem if isinstance(problem, OSError) and problem.errno in NO_ROOM else None
