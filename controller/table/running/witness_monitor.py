"""Monitors whether a witness has cosigned the record recently; recorded and shown.

The table works without a witness too.

    monitor = WitnessMonitor(running, record, moment, after=timedelta(hours=24))
    task = asyncio.create_task(monitor.run())
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import structlog
from msgspec import MsgspecError, Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.records import CONTROLLER, Moment, NoteData, RecordEntry
from controller.audit.witness import (
    WitnessReport,
    WitnessState,
    check_witnesses,
    cosigned_checkpoints,
    recorded_state,
)
from controller.table.loop import InputRejected, QueueFull, RequestResult, TableStopped
from controller.table.memory import WitnessStatus

CHECK_INTERVAL: Final = 30.0
"""Seconds between two checks."""
CHECK_TIMEOUT: Final = 60.0
"""Timeout of a check in seconds. A check that exceeds it blocks the next ones."""

_log: Final = structlog.get_logger("table.witnessing")


class WitnessedTable(Protocol):
    """The part of a running table that the monitor uses."""

    @property
    def seq(self) -> int: ...
    def set_witness(self, witness: WitnessStatus) -> None: ...
    async def record(self, entry: RecordEntry) -> RequestResult: ...


class WitnessCheck(Struct, frozen=True):
    """The result of a check, with the files' metadata."""

    recorded: WitnessState
    news: WitnessReport
    files: tuple[tuple[int, int], ...]
    seq: int
    """Sequence number of the table's last entry before the check."""


class WitnessMonitor:
    """The monitor of one table."""

    def __init__(
        self, table: WitnessedTable, record: Path, moment: Callable[[], Moment], after: timedelta
    ) -> None:
        """`after`: an entry that no witness has cosigned for this time is reported."""
        self._table = table
        self._record = record
        self._moment = moment
        self._after = after // timedelta(microseconds=1)
        self._recorded: WitnessState | None = None
        """What the record contains about witnesses; None before the first check."""
        self._last: WitnessCheck | None = None
        self._thread: asyncio.Task[WitnessCheck] | None = None

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(CHECK_INTERVAL)

    async def check(self) -> None:
        """Check once, and record and show changes. Failures are retried at the next check."""
        try:
            checked = await self._check_files()
        except (RecordProblem, OSError, ValueError, MsgspecError) as problem:
            # Damage of the record is detected elsewhere; this check only reports.
            _log.warning("witnesses not looked for", why=str(problem))
            return
        if checked is None:
            return
        if checked is not self._last:
            for wrong in checked.news.wrong:
                _log.warning("no countersigned checkpoint", why=wrong)
        self._recorded, self._last = self._recorded or checked.recorded, checked
        try:
            await self._report(checked.news)
        except (TableStopped, QueueFull, InputRejected) as problem:
            self._last = None
            _log.info("not told who has seen the record", why=str(problem))

    async def _report(self, news: WitnessReport) -> None:
        assert self._recorded is not None
        for seen in news.seen:
            await self._table.record(RecordEntry("witnessed", CONTROLLER, NoteData(seen.note)))
            self._recorded = WitnessState(seen.size)
            self._last = None  # check again which entries are not cosigned
        late = unwitnessed(news, self._moment().utc, self._after)
        self._table.set_witness(WitnessStatus(news.size, late))
        if late and late != self._recorded.since:
            await self._table.record(RecordEntry("unwitnessed", CONTROLLER, {"since": late}))
            self._recorded = WitnessState(self._recorded.size, late)

    # --- files ------------------------------------------------------------------------------

    async def _check_files(self) -> WitnessCheck | None:
        """Run the check in a thread; None if it has exceeded its timeout."""
        if self._thread is None:
            recorded, last, seq = self._recorded, self._last, self._table.seq
            work = self._in_thread(lambda: _checked(self._record, recorded, last, seq))
            self._thread = asyncio.ensure_future(work)
        done, _ = await asyncio.wait((self._thread,), timeout=CHECK_TIMEOUT)
        if not done:
            _log.warning("the disk does not answer", seconds=CHECK_TIMEOUT)
            return None
        thread, self._thread = self._thread, None
        return thread.result()

    async def _in_thread(self, work: Callable[[], WitnessCheck]) -> WitnessCheck:
        return await asyncio.to_thread(work)


def unwitnessed(news: WitnessReport, now: int, after: int) -> int:
    """Since when no entry was cosigned, if that is to be reported; else 0. Reported at once if
    there was never a cosignature."""
    if news.since and (not news.size or now - news.since > after):
        return news.since
    return 0


def _checked(
    record: Path, recorded: WitnessState | None, last: WitnessCheck | None, seq: int
) -> WitnessCheck:
    """Check the files, unless nothing has changed since the `last` check."""
    recorded = recorded or recorded_state(record)
    files = cosigned_checkpoints(record, recorded.size)
    if last is not None and last.files == files and (last.news.since or last.seq == seq):
        return last
    return WitnessCheck(recorded, check_witnesses(record, recorded.size), files, seq)
