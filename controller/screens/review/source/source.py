"""Where a review's rounds come from: a record, its index, and the file of who looked.

A running table is another source; what the pages need of one is `ReviewSource`.
"""

from __future__ import annotations

import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

import apsw
from msgspec import Struct

from controller.audit.errors import IndexBusy, IndexFileProblem, NoRecord, RecordProblem
from controller.audit.export import MANIFEST, SealedCase, check_case, export_case
from controller.audit.format.segments import DIRECTORY
from controller.audit.index import NAME, Index, IndexProgress, has_more, open_index
from controller.audit.proofs import untold
from controller.audit.read.access_log import log_access
from controller.audit.read.selection import Selection
from controller.errors import UsageProblem, printable
from controller.screens.review.view.queries import last_seq

REFRESH_INTERVAL: Final = 1.0
"""Seconds for which an index that was caught up is new enough."""
_OF_RECORD: Final = re.compile(
    r"record/(segments/\d{8}\.seg|cosigned/\d{1,19}\.note|tails/[0-9-]{1,80}\.json)"
)
_PIECE: Final = 1 << 20


class IndexGap(Struct, frozen=True):
    """An index that does not have all that it should have by now."""

    seq: int
    """The last record that it has."""
    why: str = ""
    """What stands in its way; "": it is being made."""


class OpenIndex(NamedTuple):
    """An index that is open to be asked, and how it stood when it was opened."""

    db: apsw.Connection
    short: IndexGap | None


class ReviewSource(Protocol):
    @property
    def record(self) -> Path:
        """Where its segments are."""

    @property
    def name(self) -> str:
        """What people call it by."""

    @property
    def whole(self) -> bool:
        """It is a record, of which a case can be made; not a case itself."""

    @property
    def served(self) -> bool:
        """A table writes it, in this process."""

    def look(self, who: str, what: str, of: str, *, reason: str = "", out: str = "") -> None:
        """Somebody looks: recorded on return. RecordProblem: then nobody may."""

    def index(self) -> AbstractContextManager[OpenIndex]:
        """To be asked by one thread. RecordProblem."""

    def durable(self) -> int | None:
        """The last record that is known to be on the disk; None where nobody here writes it, and
        what stands there is all that can be known."""

    def export(
        self,
        out: Path,
        pick: Selection,
        who: str,
        reason: str,
        tell: Callable[[int], None] = untold,
    ) -> SealedCase:
        """A sealed case; who made it is recorded. `tell` is told of each segment, and may raise to
        end it. RecordProblem, UsageProblem, OSError."""


class FileSource:
    """A record that nobody serves: its index, and the looks at it, in files beside it."""

    def __init__(
        self, record: Path, file: Path | None = None, *, looked_at: Path | None = None
    ) -> None:
        """`file`: of the index. `looked_at`: the case that the record is of."""
        self._record = record
        self._file = file or record / NAME
        self._looked_at = looked_at or record
        self._lock = Lock()
        self._caught_up = float("-inf")
        self._short: IndexGap | None = None

    @property
    def record(self) -> Path:
        return self._record

    @property
    def name(self) -> str:
        return printable(self._looked_at.resolve().name)

    @property
    def whole(self) -> bool:
        return self._looked_at == self._record

    @property
    def served(self) -> bool:
        return False

    def look(self, who: str, what: str, of: str, *, reason: str = "", out: str = "") -> None:
        log_access(self._looked_at, what, of, who=who, reason=reason, out=out)

    def begin(
        self, say: Callable[[str], None], progress: Callable[[IndexProgress], None] | None = None
    ) -> None:
        """The index, with all that the record has; made where there is none. RecordProblem."""
        with Index.open_or_rebuild(self._record, self._file, say=say) as index:
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
        short = self._fresh()
        with closing(open_index(self._record, self._file)) as db:
            yield OpenIndex(db, short)

    def _fresh(self) -> IndexGap | None:
        """Caught up, where that was long ago."""
        with self._lock:
            if time.monotonic() - self._caught_up > REFRESH_INTERVAL:
                self._catch_up()
            return self._short

    def _catch_up(self) -> None:
        try:
            with Index.open(self._record, self._file) as index:
                self._go_on(index)
            self._short = None
        except (IndexFileProblem, IndexBusy) as problem:  # asked as far as it goes
            with closing(open_index(self._record, self._file)) as db:
                short = IndexGap(last_seq(db), problem.what)
                self._short = short if self._has_more(db) else None
        self._caught_up = time.monotonic()

    def _go_on(self, index: Index) -> None:
        index.catch_up()

    def _has_more(self, db: apsw.Connection) -> bool:
        """The record has more than the index. RecordProblem."""
        return has_more(self._record, db, self._file)

    def durable(self) -> int | None:
        return None

    def export(
        self,
        out: Path,
        pick: Selection,
        who: str,
        reason: str,
        tell: Callable[[int], None] = untold,
    ) -> SealedCase:
        if not self.whole:
            raise UsageProblem("case", "this is a case already", "hand on the file itself")
        return export_case(self._record, out, pick, who=who, reason=reason, on_segment=tell)


# --- a record, or a case ----------------------------------------------------------------------


def open_source(place: Path, scratch: Path, file: Path | None = None) -> FileSource:
    """A record's directory, or a case: a directory or a zip. `scratch` is for what a case must
    not have in it. NoRecord, CaseProblem; RecordProblem where a case is not what it was."""
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
        todo = "look at it with `holecard audit check-case`; ask for the case again"
        raise RecordProblem(place, f"{what}{rest}", todo)
    index = file or scratch / NAME
    if place.is_dir():
        return FileSource(place / "record", index, looked_at=place)
    return FileSource(_unpacked(place, scratch / "case"), index, looked_at=place)


def _unpacked(case: Path, into: Path) -> Path:
    """The record of a zipped case, whose files are those of its manifest."""
    with zipfile.ZipFile(case) as packed:
        for name in packed.namelist():
            if not _OF_RECORD.fullmatch(name):
                continue
            file = into / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(name) as source, file.open("xb") as target:
                shutil.copyfileobj(source, target, _PIECE)
    return into / "record"
