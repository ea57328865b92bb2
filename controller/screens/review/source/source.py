"""Sources of a review: a record with its index and access log.

`LiveSource` is the one of a running table.
"""

from __future__ import annotations

import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import apsw
from msgspec import Struct

from controller.audit.errors import IndexBusy, IndexFileProblem, NoRecord, RecordProblem
from controller.audit.export import MANIFEST, SealedCase, check_case, export_case
from controller.audit.format.segments import DIRECTORY
from controller.audit.index import NAME, Index, IndexProgress, has_more, open_index
from controller.audit.proofs import untold
from controller.audit.read.access_log import log_access
from controller.audit.read.lookup import Selection
from controller.errors import UsageProblem, printable
from controller.screens.review.view.queries import last_seq

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
        self.name = printable(self._looked_at.resolve().name)
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
        tell: Callable[[int], None] = untold,
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
