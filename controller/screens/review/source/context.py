"""What all pages of a review share: source, caches, exported cases, background verification."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final, TypeAlias

import apsw
import msgspec
from msgspec import Struct
from starlette.responses import Response

from controller.api.http import Listeners
from controller.audit.errors import CannotWrite, RecordProblem
from controller.audit.export import Manifest, SealedCase
from controller.audit.format.notes import VerifierKey
from controller.audit.format.records import OpenedData, RecordPosition
from controller.audit.format.segments import DIRECTORY
from controller.audit.read.retirements import where_retired
from controller.audit.replay import procedure_of
from controller.audit.text import currency_of
from controller.audit.verify import VerifyProgress, VerifyReport, verify
from controller.procedure.prompts import AmountFormat, Texts
from controller.screens.common.access import PageNotFound, Visit, see_other
from controller.screens.common.sessions import SessionStore
from controller.screens.common.templates import Pages
from controller.screens.review.source.source import FileSource, IndexGap
from controller.screens.review.view import queries
from controller.screens.review.view.queries import opened_of
from controller.screens.review.view.replay import ReplayCache
from controller.screens.review.view.report import GameStart

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
    """Verifies the record in the background: one run at a time, shown to all users."""

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


MAX_CASES: Final = 4
_BYTES: Final = 12

Making: TypeAlias = Callable[[Path, Callable[[int], None]], SealedCase]
"""Exports a case to this path and calls back before each segment."""


class StoredCase(Struct, frozen=True):
    id: str
    who: str
    file: Path
    of: str
    seal: str
    manifest: Manifest

    @property
    def size(self) -> int:
        return self.file.stat().st_size


class CaseStore:
    """Exported cases until they are downloaded: at most MAX_CASES, until the review ends."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._kept: dict[str, StoredCase] = {}
        self._lock = Lock()
        self._turn = Lock()
        """Exports run serially, which may take minutes; lookups do not wait for them."""
        self._ends = Event()

    def make(self, name: str, who: str, of: str, export: Making) -> StoredCase:
        """Export a case; the oldest one is deleted if there are too many. Raises what `export`
        raises, and CannotWrite if the review ends."""
        with self._turn:
            self._go_on()
            key = secrets.token_urlsafe(_BYTES)
            place = self._scratch / f"export-{key}"
            place.mkdir(mode=0o700)
            try:
                case = export(place / name, self._go_on)
                kept = StoredCase(key, who, case.out, of, case.seal, case.manifest)
                self._keep(kept)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
            return kept

    def _go_on(self, number: int = 0) -> None:
        if self._ends.is_set():
            raise CannotWrite(
                "export",
                "is not made: the review has ended",
                "ask for it again when the review is there again",
            )

    def _keep(self, kept: StoredCase) -> None:
        with self._lock:
            self._go_on()
            while len(self._kept) >= MAX_CASES:
                self._drop(next(iter(self._kept)))
            self._kept[kept.id] = kept

    def find(self, key: str, who: str) -> StoredCase | None:
        """Returns a case of this user."""
        found = self._kept.get(key)
        return found if found is not None and found.who == who else None

    def end(self) -> None:
        """Cancel the current export at its next segment, and reject later ones."""
        self._ends.set()

    def close(self) -> None:
        self.end()
        with self._lock:
            for key in list(self._kept):
                self._drop(key)

    def _drop(self, key: str) -> None:
        shutil.rmtree(self._kept.pop(key).file.parent, ignore_errors=True)


MAX_STREAMS: Final = 8
"""Live streams that may be open."""
_SEATS: Final = 7


class _GameTerms(Struct, frozen=True):
    """The displayed fields of a game, of any version."""

    name: str = ""
    title: str = ""
    seats: int = _SEATS


class TableInfo(Struct, frozen=True):
    """A boot of the table."""

    opened: OpenedData | None
    game: str
    seats: int

    @property
    def money(self) -> AmountFormat:
        return currency_of(self.opened)


class ReviewContext:
    def __init__(
        self,
        source: FileSource,
        pages: Pages,
        sessions: SessionStore,
        scratch: Path,
        table_key: VerifierKey | None = None,
    ) -> None:
        """`scratch`: the directory of exported cases."""
        self.source = source
        self.pages = pages
        self.sessions = sessions
        self.table_key = table_key
        self.cases = CaseStore(scratch)
        self.checking = VerificationRunner(source.record, table_key, apart=source.served)
        self.standings = ReplayCache(source.record)
        self.streams = Listeners(MAX_STREAMS)
        """Open live streams; event loop only."""
        self._tables: dict[RecordPosition, TableInfo] = {}

    def prepare(self) -> None:
        """Load what the first request would wait for: templates and the rules of the last boot.
        Raises RecordProblem."""
        self.pages.prepare()
        with self.source.index() as (db, _):
            table = self.table_at(db, queries.last_seq(db))
        if table.opened is not None:
            procedure_of(table.opened)

    def end(self) -> None:
        """Cancel background work without waiting for it."""
        self.checking.end()
        self.cases.end()

    def close(self) -> None:
        self.end()
        self.checking.close()
        self.cases.close()

    def page(
        self, visit: Visit[ReviewContext], template: str, *, status: int = 200, **values: Any
    ) -> Response:
        """Render a page with the notices of the visit."""
        return self.pages.page(
            template, visit.session, status=status, notices=visit.notices, **values
        )

    def to(self, path: str) -> Response:
        """Redirect to a page of the review."""
        return see_other(self.pages.base + path)

    def table_at(self, db: apsw.Connection, seq: int) -> TableInfo:
        """Returns the boot of a record. Raises RecordProblem."""
        lying = queries.last_of_kind(db, "opened", seq)
        return TableInfo(None, "", _SEATS) if lying is None else self._table(lying)

    def games(self, db: apsw.Connection) -> list[GameStart]:
        """Returns from which record on which game was dealt. Raises RecordProblem."""
        boots = queries.all_of_kind(db, "opened")
        return [GameStart(one.place.seq, self._table(one).game) for one in boots]

    def _table(self, lying: queries.RecordLocation) -> TableInfo:
        found = self._tables.get(lying.place)
        if found is None:
            opened = opened_of(self.source.record, lying)
            try:
                terms = msgspec.json.decode(opened.game, type=_GameTerms)
            except msgspec.DecodeError:
                terms = _GameTerms()
            found = TableInfo(opened, terms.title or terms.name, max(1, min(terms.seats, 20)))
            self._tables[lying.place] = found
        return found


@contextmanager
def recorded_look(visit: Visit[ReviewContext], what: str, of: str) -> Iterator[apsw.Connection]:
    """Record the look, then open the index. Raises RecordProblem."""
    visit.house.source.look(visit.who, f"review {what}", of)
    with open_index(visit) as db:
        yield db


@contextmanager
def open_index(visit: Visit[ReviewContext]) -> Iterator[apsw.Connection]:
    """Open the index without recording a look. If the index is incomplete, the page has a notice.
    Raises RecordProblem."""
    with visit.house.source.index() as (db, short):
        if short is not None:
            visit.notices[:] = [_words(short, visit.house.pages.texts)]
        yield db


def _words(short: IndexGap, texts: Texts) -> str:
    seq = f"{short.seq:,}"
    if not short.why:
        return texts("common.short", seq=seq)
    return texts("common.short_why", seq=seq, why=short.why)


def round_not_found(house: ReviewContext, number: int) -> PageNotFound:
    retired = where_retired(house.source.record, rounds=(number, number))
    return PageNotFound("round", retired or f"there is no round {number}", "a round of this record")
