"""An index that follows its record while a table runs, in a thread of its own.

    follower = Follower(record, durable=lambda: book.log.where.seq)
    follower.wake()                         # whenever something was recorded
    follower.close()

Nobody waits for it: what it cannot do it says once, and the table goes on without an index.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from pathlib import Path
from threading import Condition
from typing import Final

from controller.audit.index import Index
from controller.audit.index_file import NAME
from controller.audit.problems import IndexBusy

ROOM: Final = 128 * 1024
"""Bytes of records that are taken in one go: milliseconds of work, so that the table's own thread
has its turn."""
CLOSE_WAIT: Final = 10.0
"""Seconds that the disk has at the end."""


class Follower:
    """One record's index, caught up whenever it is told to."""

    def __init__(
        self,
        record: Path,
        file: Path | None = None,
        *,
        durable: Callable[[], int] | None = None,
        failed: Callable[[BaseException], None] | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """`durable`: the last seq that is on the disk. `failed` is called once, in the thread, with
        the first thing that went wrong; nothing follows any more then. `say`: see Index.ready()."""
        self._record = record
        self._file = file
        self._durable = durable
        self._failed = failed
        self._say = say
        self._change = Condition()
        self._woken = True
        self._ends = False
        self._seq = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._work: Future[None] = self._thread.submit(self._follow)
        self._work.add_done_callback(self._over)

    def wake(self) -> None:
        """There is more in the record. Never waits."""
        with self._change:
            self._woken = True
            self._change.notify_all()

    @property
    def seq(self) -> int:
        """How far the index goes."""
        return self._seq

    @property
    def problem(self) -> BaseException | None:
        """Why nothing follows any more."""
        return self._work.exception() if self._work.done() else None

    def reaches(self, seq: int, seconds: float) -> bool:
        """Waits until the index goes as far, for so long. False where it does not."""
        with self._change:
            self._change.wait_for(lambda: self._seq >= seq or self._work.done(), seconds)
        return self._seq >= seq

    def close(self) -> None:
        """What it is at is finished, and no more. IndexBusy where that does not end."""
        with self._change:
            self._ends = True
            self._change.notify_all()
        try:
            self._work.exception(CLOSE_WAIT)
        except StillRunning:
            self._thread.shutdown(wait=False)
            what = f"the index has not ended within {CLOSE_WAIT:g} s"
            where = self._file or self._record / NAME
            raise IndexBusy(where, what, "look at its disk; the record is not touched") from None
        self._thread.shutdown()

    # --- in the thread --------------------------------------------------------------------

    def _follow(self) -> None:
        with Index.ready(self._record, self._file, say=self._say) as index:
            while self._waits():
                more = True
                while more and not self._ends:
                    began = time.monotonic()
                    durable = None if self._durable is None else self._durable()
                    _, more = index.step(durable, ROOM)
                    self._reached(index.goes.seq)
                    if more:
                        self._rests(time.monotonic() - began)

    def _waits(self) -> bool:
        """Until there is something to do; False at the end."""
        with self._change:
            self._change.wait_for(lambda: self._woken or self._ends)
            self._woken = False
            return not self._ends

    def _rests(self, seconds: float) -> None:
        """As long as it has worked: the other half of the time is the table's."""
        with self._change:
            self._change.wait_for(lambda: self._ends, seconds)

    def _reached(self, seq: int) -> None:
        with self._change:
            self._seq = seq
            self._change.notify_all()

    def _over(self, work: Future[None]) -> None:
        with self._change:
            self._change.notify_all()
        problem = work.exception()
        if problem is not None and self._failed is not None:
            self._failed(problem)
