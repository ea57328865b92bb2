"""Sources of a review: a record with its index and access log; `LiveSource`: of a running table."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final, NamedTuple, TypeVar

import apsw
import structlog
from msgspec import Struct

from controller.api.contract.errors import Problem
from controller.audit.errors import (
    CannotWrite,
    IndexBusy,
    IndexFileProblem,
    IndexProblem,
    NoRecord,
    RecordProblem,
)
from controller.audit.export import MANIFEST, SealedCase, check_case, export_case
from controller.audit.format.segments import DIRECTORY
from controller.audit.index import NAME, Index, IndexProgress, has_more, open_index
from controller.audit.proofs import no_progress
from controller.audit.read.access_log import log_access
from controller.audit.read.lookup import Selection
from controller.commands import real_path
from controller.errors import UsageProblem, printable
from controller.people import RecordView, entry_for
from controller.screens.review.view.queries import last_seq
from controller.table.loop import InputRejected, QueueFull, TableStopped
from controller.table.running import RunningTable

REFRESH_INTERVAL: Final = 1.0
"""Seconds until an index is updated again."""
_OF_RECORD: Final = re.compile(
    r"record/(segments/\d{8}\.seg|cosigned/\d{1,19}\.note|tails/[0-9-]{1,80}\.json)"
)
_PIECE: Final = 1 << 20


class IndexGap(Struct, frozen=True):
    """An index that is not up to date."""

    seq: int
    """Its last seq."""
    why: str = ""
    """Why it cannot be updated; empty while it is being built."""


class OpenIndex(NamedTuple):
    """An open index, and what it lacks."""

    db: apsw.Connection
    short: IndexGap | None


class FileSource:
    """A record without a running table; its index and access log are files beside it."""

    served = False
    """A table in this process writes it."""

    def __init__(
        self, record: Path, file: Path | None = None, *, looked_at: Path | None = None
    ) -> None:
        """`file`: of the index. `looked_at`: the case that contains the record."""
        self.record = record
        self.whole = looked_at is None
        """It is a record, from which cases can be exported, and not a case."""
        self._file = file or record / NAME
        self._looked_at = looked_at or record
        self.name = printable(real_path(self._looked_at).name)
        """Its name for users."""
        self._lock = Lock()
        self._caught_up = float("-inf")
        self._short: IndexGap | None = None

    def look(self, who: str, what: str, of: str, *, reason: str = "", out: str = "") -> None:
        """Record an access; durable on return. Raises RecordProblem; nothing may be shown then."""
        log_access(self._looked_at, what, of, who=who, reason=reason, out=out)

    def begin(
        self, say: Callable[[str], None], progress: Callable[[IndexProgress], None] | None = None
    ) -> None:
        """Build or update the index. Raises RecordProblem."""
        with Index.open_or_rebuild(self.record, self._file, say=say) as index:
            try:
                index.catch_up(progress)
            except (IndexFileProblem, IndexBusy) as problem:
                last = index.position.seq
                if not last:
                    raise
                self._short = IndexGap(last, problem.what)
                say(f"the index goes up to record {last} only: {problem.what}")
        self._caught_up = time.monotonic()

    @contextmanager
    def index(self) -> Iterator[OpenIndex]:
        """Open the index, for one thread. Raises RecordProblem."""
        short = self._fresh()
        with closing(open_index(self.record, self._file)) as db:
            yield OpenIndex(db, short)

    def _fresh(self) -> IndexGap | None:
        """Update the index if the last update is too old."""
        with self._lock:
            if time.monotonic() - self._caught_up > REFRESH_INTERVAL:
                self._catch_up()
            return self._short

    def _catch_up(self) -> None:
        try:
            with Index.open(self.record, self._file) as index:
                self._go_on(index)
            self._short = None
        except (IndexFileProblem, IndexBusy) as problem:  # used up to its last entry
            with closing(open_index(self.record, self._file)) as db:
                short = IndexGap(last_seq(db), problem.what)
                self._short = short if self._has_more(db) else None
        self._caught_up = time.monotonic()

    def _go_on(self, index: Index) -> None:
        index.catch_up()

    def _has_more(self, db: apsw.Connection) -> bool:
        """Returns whether the record has entries beyond the index. Raises RecordProblem."""
        return has_more(self.record, db, self._file)

    def durable(self) -> int | None:
        """Returns the last durable seq; None if no table in this process writes the record."""
        return None

    def export(
        self,
        out: Path,
        pick: Selection,
        who: str,
        reason: str,
        tell: Callable[[int], None] = no_progress,
    ) -> SealedCase:
        """Export a sealed case and record who did. `tell` is called for each segment, and may raise
        to cancel. Raises RecordProblem, UsageProblem, OSError."""
        if not self.whole:
            raise UsageProblem("case", "this is a case already", "hand on the file itself")
        return export_case(self.record, out, pick, who=who, reason=reason, on_segment=tell)


# --- a record, or a case ----------------------------------------------------------------------


def open_source(place: Path, scratch: Path, file: Path | None = None) -> FileSource:
    """Open a record's directory, or a case as a directory or zip. `scratch`: for files that do not
    belong into a case. Raises NoRecord, CaseProblem, and RecordProblem if the seal of a case is
    broken."""
    if (place / DIRECTORY).is_dir():
        return FileSource(place, file)
    if not place.exists():
        raise NoRecord(place, "there is nothing here", "name a record's directory, or a case")
    if place.is_dir() and not (place / MANIFEST).is_file():
        raise NoRecord(place, "there is no record here", "name a record's directory, or a case")
    checked = check_case(place)
    if checked.wrong:
        more = len(checked.wrong) - 1
        what = f"the case is not what was sealed: {printable(checked.wrong[0])}"
        rest = f", and {more} more" if more else ""
        raise RecordProblem(
            place,
            f"{what}{rest}",
            "look at it with `holecard audit check-case`; ask for the case again",
        )
    index = file or scratch / NAME
    if place.is_dir():
        return FileSource(place / "record", index, looked_at=place)
    return FileSource(_unpacked(place, scratch / "case"), index, looked_at=place)


def _unpacked(case: Path, into: Path) -> Path:
    """Unpack the record of a zipped case, and nothing else."""
    with zipfile.ZipFile(case) as packed:
        for name in packed.namelist():
            if not _OF_RECORD.fullmatch(name):
                continue
            file = into / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(name) as source, file.open("xb") as target:
                shutil.copyfileobj(source, target, _PIECE)
    return into / "record"


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
    threads.

    Accesses are recorded in the record itself, and the index is updated in the background. Requests
    wait up to INDEX_TIMEOUT for its first entries. A corrupt index is rebuilt, and not used before
    it is."""

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
        tell: Callable[[int], None] = no_progress,
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
