"""Whether somebody else has seen the record lately: looked at now and then, told in the record and
to whoever looks at the table. It stands in nobody's way: a table without a witness deals on.

    witnessing = Witnessing(running, moment, after=timedelta(hours=24))
    task = asyncio.create_task(witnessing.run())
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
"""Seconds between two looks."""
CHECK_TIMEOUT: Final = 60.0
"""Seconds that the disk has for a look. Until it has answered there is no other one."""

_log: Final = structlog.get_logger("table.witnessing")


class WitnessedTable(Protocol):
    """A running table, as far as it is told of its witnesses."""

    @property
    def seq(self) -> int: ...
    def seen_by(self, witness: WitnessStatus) -> None: ...
    async def record(self, entry: RecordEntry) -> RequestResult: ...


class WitnessCheck(Struct, frozen=True):
    """A look at the files, and what they were then."""

    said: WitnessState
    news: WitnessReport
    files: tuple[tuple[int, int], ...]
    seq: int
    """Of the table's last entry, before the look."""


class WitnessMonitor:
    """One table's."""

    def __init__(
        self, table: WitnessedTable, record: Path, moment: Callable[[], Moment], after: timedelta
    ) -> None:
        """`after`: so long after it was written a record that no witness has seen is told of."""
        self._table = table
        self._record = record
        self._moment = moment
        self._after = after // timedelta(microseconds=1)
        self._said: WitnessState | None = None
        """What the record tells; None before the first look."""
        self._last: WitnessCheck | None = None
        self._thread: asyncio.Task[WitnessCheck] | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(CHECK_INTERVAL)

    async def look(self) -> None:
        """What has changed is recorded, and shown. What cannot be is tried again the next time."""
        try:
            looked = await self._look()
        except (RecordProblem, OSError, ValueError, MsgspecError) as problem:
            # The record is verified by others, and says so where it is opened: this only tells.
            _log.warning("witnesses not looked for", why=str(problem))
            return
        if looked is None:
            return
        if looked is not self._last:
            for wrong in looked.news.wrong:
                _log.warning("no countersigned checkpoint", why=wrong)
        self._said, self._last = self._said or looked.said, looked
        try:
            await self._tell(looked.news)
        except (TableStopped, QueueFull, InputRejected) as problem:
            self._last = None
            _log.info("not told who has seen the record", why=str(problem))

    async def _tell(self, news: WitnessReport) -> None:
        assert self._said is not None
        for seen in news.seen:
            await self._table.record(RecordEntry("witnessed", CONTROLLER, NoteData(seen.note)))
            self._said = WitnessState(seen.size)
            self._last = None  # it is looked once more what nobody has seen
        late = unwitnessed(news, self._moment().utc, self._after)
        self._table.seen_by(WitnessStatus(news.size, late))
        if late and late != self._said.since:
            await self._table.record(RecordEntry("unwitnessed", CONTROLLER, {"since": late}))
            self._said = WitnessState(self._said.size, late)

    # --- the files --------------------------------------------------------------------------

    async def _look(self) -> WitnessCheck | None:
        """None where the disk has not answered yet."""
        if self._thread is None:
            said, last, seq = self._said, self._last, self._table.seq
            work = self._in_thread(lambda: _looked(self._record, said, last, seq))
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
    """Since when nobody has countersigned, where that is to be told; 0 where it is not. Where
    nobody ever has, it is told at once."""
    if news.since and (not news.size or now - news.since > after):
        return news.since
    return 0


def _looked(
    record: Path, said: WitnessState | None, last: WitnessCheck | None, seq: int
) -> WitnessCheck:
    """Read only where something may be another than the last time."""
    said = said or recorded_state(record)
    files = cosigned_checkpoints(record, said.size)
    if last is not None and last.files == files and (last.news.since or last.seq == seq):
        return last
    return WitnessCheck(said, check_witnesses(record, said.size), files, seq)
