"""The record of a running table: accesses are recorded in the record itself, and the index is
updated in the background.

Requests wait up to INDEX_TIMEOUT for the first entries of an index. A corrupt index is rebuilt, and
not used before it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Final

import apsw
import structlog

from controller.audit.errors import IndexBusy, IndexFileProblem, IndexProblem, RecordProblem
from controller.audit.export import SealedCase, export_case
from controller.audit.index import NAME, Index, open_index
from controller.audit.proofs import untold
from controller.audit.read.lookup import Selection
from controller.people import RecordView, entry_for
from controller.screens.review.source.loop_bridge import LoopBridge
from controller.screens.review.source.source import FileSource, IndexGap, OpenIndex
from controller.screens.review.view.queries import last_seq
from controller.table.running import RunningTable

CHUNK_BYTES: Final = 64 * 1024
"""Bytes of records that are indexed at once."""
PAUSE: Final = 0.01
"""Seconds between two chunks, so that the table is not delayed."""
FOLLOW_INTERVAL: Final = 2.0
"""Seconds between two updates of the index."""
INDEX_TIMEOUT: Final = 10.0
"""Seconds that a request waits for an index that is being built."""
_MEND: Final = "mend that: the table deals on, and the index follows by itself"

_log: Final = structlog.get_logger("screens")


class LiveSource(FileSource):
    """The source of a running table. Create it in its event loop; the methods are for other
    threads."""

    served = True

    def __init__(self, table: RunningTable) -> None:
        super().__init__(table.parts.record)
        self.name = table.parts.name
        self._table = table
        self._loop = LoopBridge(table.parts.record)
        self._made_to = table.table.seq
        """An index with a lower last seq is still being built."""
        self._begun = Event()
        """Set when the index has entries, or cannot be built."""
        self._followed = False
        """The index was complete once."""
        self._spoilt = False
        """The index is corrupt and has to be rebuilt."""
        self._why = ""
        """Why it could not be built."""
        self._ends = Event()

    def look(self, who: str, what: str, of: str, *, reason: str = "", out: str = "") -> None:
        self._noted(self.record, what, of, who=who, reason=reason, out=out, seal="")

    def durable(self) -> int | None:
        return self._table.table.seq

    def export(
        self,
        out: Path,
        pick: Selection,
        who: str,
        reason: str,
        tell: Callable[[int], None] = untold,
    ) -> SealedCase:
        return export_case(
            self.record, out, pick, who=who, reason=reason, on_segment=tell, noted=self._noted
        )

    def _noted(
        self, record: Path, what: str, of: str, *, who: str, reason: str, out: str, seal: str
    ) -> None:
        said = RecordView("surveillance", who, what, of, reason, out, seal)
        self._loop.run(self._table.record(entry_for(said)))

    # --- the index, as it is asked --------------------------------------------------------

    @contextmanager
    def index(self) -> Iterator[OpenIndex]:
        try:
            with super().index() as asked:
                yield asked
        except IndexFileProblem as problem:  # the path of a running table cannot be changed
            raise type(problem)(problem.where, problem.what, _MEND) from None

    def _fresh(self) -> IndexGap | None:
        if self._followed:
            short = super()._fresh()
            if self._followed:  # not reset in the meantime
                return short
        self._begun.wait(INDEX_TIMEOUT)
        why, last = self._why, self._last()
        if last:
            return IndexGap(last, why) if last < self._made_to else None
        if why:
            raise IndexFileProblem(self.record / NAME, f"the index cannot be made: {why}", _MEND)
        raise IndexBusy(
            self.record / NAME,
            "the index is being made: nothing can be looked up yet",
            "look again in a moment",
        )

    def _last(self) -> int:
        """Returns the last indexed seq; 0 for an empty index."""
        if self._spoilt:
            return 0
        try:
            with closing(open_index(self.record)) as db:
                return last_seq(db)
        except IndexProblem:  # not created yet; `_why` has the reason, if any
            return 0

    # --- as it follows --------------------------------------------------------------------

    def _catch_up(self) -> None:
        try:
            super()._catch_up()
        except IndexProblem as problem:
            if not problem.remake:
                raise
            self._fell_back(spoilt=True)

    def _go_on(self, index: Index) -> None:
        if index.position.seq < self._made_to:  # another process has removed or rebuilt it
            self._fell_back(spoilt=False)
            return
        self._take(index, 0.0)
        self._made_to = index.position.seq

    def _fell_back(self, *, spoilt: bool) -> None:
        """The index was replaced: rebuild it in the background, not during a request."""
        self._made_to = self._table.table.seq
        self._spoilt, self._why = spoilt, ""
        self._followed = False
        self._begun.clear()

    def _has_more(self, db: apsw.Connection) -> bool:
        return last_seq(db) < self._table.table.seq

    async def follow(self) -> None:
        """Update the index until cancelled."""
        told = ""
        while True:
            why = ""
            try:
                await asyncio.to_thread(self.update)
                why = "" if self._short is None else self._short.why
            except RecordProblem as problem:  # the table continues; requests report the reason
                why = str(problem)
            if why and why != told:
                _log.warning("the index does not follow", why=why)
            told = why
            await asyncio.sleep(FOLLOW_INTERVAL)

    def update(self) -> None:
        """Index what is new, once. Raises RecordProblem."""
        if self._followed:
            super()._fresh()
            return
        try:
            with self._opened() as index:
                self._take(index, PAUSE)
        except RecordProblem as problem:
            self._spoilt |= isinstance(problem, IndexProblem) and problem.remake
            self._why = problem.what
            self._made_to = self._table.table.seq
            raise
        finally:
            self._begun.set()
        if not self._ends.is_set():
            self._followed = True

    def _opened(self) -> Index:
        if not self._spoilt:
            return Index.open_or_rebuild(self.record, say=_made_anew)
        _made_anew("it is damaged, or of another version")
        index = Index.rebuild(self.record)
        self._spoilt = False
        return index

    def _take(self, index: Index, breath: float) -> None:
        """Index in small steps. The records are known to be durable, so no sync is needed."""
        more = True
        while more and not self._ends.is_set():
            more = index.step(self._table.table.seq, CHUNK_BYTES).more
            self._why = ""
            self._begun.set()
            self._ends.wait(breath)

    def close(self) -> None:
        """Stop the background update after its current step."""
        self._ends.set()
        self._begun.set()


def _made_anew(words: str) -> None:
    _log.info("the index is made anew", why=words)
