"""What all pages of a review share: source, caches, background work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct
from starlette.responses import Response

from controller.api.http import Listeners
from controller.audit.format.notes import VerifierKey
from controller.audit.format.records import OpenedData, RecordPosition
from controller.audit.read.retirements import where_retired
from controller.audit.replay import procedure_of
from controller.audit.text import currency_of
from controller.procedure.prompts import AmountFormat, Texts
from controller.screens.common.access import PageNotFound, Visit, see_other
from controller.screens.common.sessions import SessionStore
from controller.screens.common.templates import Pages
from controller.screens.review.source.cases import CaseStore
from controller.screens.review.source.source import FileSource, IndexGap
from controller.screens.review.source.verification import VerificationRunner
from controller.screens.review.view import queries
from controller.screens.review.view.record_reader import opened_of
from controller.screens.review.view.replay_state import ReplayCache
from controller.screens.review.view.report import GameStart

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
