"""The index of a record: a SQLite file to search records. The segments remain authoritative.

    with Index.open_or_rebuild(record, say=print) as index:
        index.catch_up()

It can be rebuilt from the segments at any time. An update only reads segments and does not block
the record's writer. Readers of the index see a snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self

import apsw
import msgspec

from controller.audit.errors import (
    IndexAhead,
    IndexDamaged,
    IndexFileProblem,
    IndexOfOther,
    IndexOutdated,
    IndexProblem,
)
from controller.audit.format.segments import numbers
from controller.audit.index import file as index_file
from controller.audit.index.entries import index_record
from controller.audit.index.file import (
    NAME,
    OTHER_FILE_HINT,
    REBUILD_HINT,
    application,
    check_version,
    closed_on_error,
    create,
    has_tables,
    is_empty,
    not_ours,
    open_for_writing,
    read_position,
    set_wal_mode,
    sqlite_errors,
    store_position,
    transaction,
    wipe,
)
from controller.audit.index.frames import (
    IndexPosition,
    RecordStart,
    has_frame,
    read_new_frames,
    record_start,
)
from controller.audit.index.open_state import OpenState
from controller.audit.index.rows import INSERTED, Rows, Words
from controller.audit.index.schema import APPLICATION
from controller.audit.read.reader import read_segment

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes of records per transaction."""
_CORRECTED: Final = "UPDATE raw_rounds SET corrected = corrected + 1 WHERE round = ?"
_decode_state: Final = msgspec.json.Decoder(OpenState).decode


class IndexStep(NamedTuple):
    """The result of one transaction."""

    records: int
    more: bool
    """Whether more records are available."""


class IndexProgress(NamedTuple):
    """The progress of an update."""

    records: int
    """Number of records until now."""
    seq: int
    segment: int
    segments: int
    """Number of the last segment."""


class Index:
    """The index of one record, opened for writing. Not thread-safe."""

    def __init__(self, record: Path, file: Path, db: apsw.Connection) -> None:
        self.record = record
        self.file = file
        self.db = db
        self._inode = _inode(file)
        self._words = Words()
        self._words_at: IndexPosition | None = None
        """The position at which `_words` contained all words of the index."""

    @classmethod
    def open(cls, record: Path, file: Path | None = None) -> Self:
        """Open the index; create an empty one if there is none.

        Raises NoRecord, RecordDamaged, and IndexProblem if it does not fit this record.
        """
        file = file or record / NAME
        start = record_start(record)
        db = open_for_writing(file)
        with closed_on_error(db, file):
            if is_empty(db, file):
                create(db, file, start)
            elif application(db) != APPLICATION:
                raise _not_an_index(db, file, record)
            _check(db, file, record, start)
            set_wal_mode(db)
            return cls(record, file, db)

    @classmethod
    def rebuild(cls, record: Path, file: Path | None = None) -> Self:
        """Create an empty index.

        The default file is overwritten in any case, another file only if it is an index. Raises
        NoRecord, RecordDamaged and IndexProblem.
        """
        file = file or record / NAME
        start = record_start(record)
        db = open_for_writing(file)
        with closed_on_error(db, file):
            ours = file == record / NAME or application(db) == APPLICATION
            if not ours and not is_empty(db, file):
                raise not_ours(file)
            wipe(db)
            create(db, file, start)
            set_wal_mode(db)
            return cls(record, file, db)

    @classmethod
    def open_or_rebuild(
        cls, record: Path, file: Path | None = None, *, say: Callable[[str], None] | None = None
    ) -> Self:
        """Open the index; rebuild it after an error that needs no investigation, which `say`
        reports."""
        try:
            return cls.open(record, file)
        except IndexProblem as problem:
            if not problem.remake:
                raise
            if say is not None:
                say(f"{problem.where}: {problem.what}; it is being made anew")
        return cls.rebuild(record, file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()

    @property
    def position(self) -> IndexPosition:
        """The last frame in the index."""
        with sqlite_errors(self.file):
            return read_position(self.db, self.file)[1]

    def catch_up(
        self, progress: Callable[[IndexProgress], None] | None = None, durable: int | None = None
    ) -> int:
        """Index all new records, and return their number.

        An interrupted update leaves a valid index that ends earlier. For `durable` see `step`.
        Raises RecordDamaged and CannotWrite if the record cannot be read, and IndexProblem.
        """
        count, more = 0, True
        while more:
            taken, more = self.step(durable)
            count += taken
            if progress is not None and taken:
                goes = self.position
                last = numbers(self.record)[-1]
                progress(IndexProgress(count, goes.seq, goes.segment, last))
        return count

    def step(self, durable: int | None = None, room: int = BATCH_BYTES) -> IndexStep:
        """Run one transaction with up to `room` bytes of records.

        `durable` is the last seq that is known to be durable; without it the records are synced
        first. Raises RecordDamaged, CannotWrite and IndexProblem; the index is unchanged then.
        """
        if _inode(self.file) != self._inode:
            what = "the index is no longer the file that was opened: somebody has replaced it"
            raise IndexFileProblem(self.file, what, "open it again")
        with sqlite_errors(self.file), transaction(self.db):
            return self._take(durable, room)

    def _take(self, durable: int | None, room: int) -> IndexStep:
        db = self.db
        origin, goes, text = read_position(db, self.file)
        found = read_new_frames(self.record, goes, room, durable)
        if not found.frames:
            return IndexStep(0, found.more)
        if goes != self._words_at:
            self._words = Words(db.execute("SELECT word, id FROM words"))
        # New words are not in the index until the transaction is committed.
        self._words_at = None
        state = _decode_state(text)
        rows = Rows(self._words, state)
        for segment, start, frame in found.frames:
            index_record(rows, segment, start + frame.offset, frame.seq, frame.data)
        self._keep(rows)
        store_position(db, origin, found.goes, msgspec.json.encode(state).decode())
        self._words_at = found.goes
        return IndexStep(len(found.frames), found.more)

    def _keep(self, rows: Rows) -> None:
        db = self.db
        db.executemany("INSERT INTO words VALUES (?, ?)", rows.words.kept())
        for table in INSERTED:
            db.executemany(table.insert, rows.inserted[table.name])
        for table, changed in rows.spans.changed():
            db.executemany(table.put, changed)
        db.executemany(_CORRECTED, rows.spans.corrected)


def open_index(record: Path, file: Path | None = None) -> apsw.Connection:
    """Open the index read-only.

    Raises NoRecord, RecordDamaged, and IndexProblem if it does not fit this record.
    """
    file = file or record / NAME
    start = record_start(record)
    db = index_file.open_readonly(file)
    with closed_on_error(db, file):
        _check(db, file, record, start)
    return db


def has_more(record: Path, db: apsw.Connection, file: Path) -> bool:
    """Return whether the record has more records than the index. Raises RecordDamaged, CannotWrite
    and IndexDamaged."""
    with sqlite_errors(file):
        goes = read_position(db, file)[1]
    return bool(read_new_frames(record, goes, 1, goes.seq + 1).frames)


def _inode(file: Path) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError as problem:
        what = f"the index cannot be looked at: {problem.strerror}"
        raise IndexFileProblem(file, what, OTHER_FILE_HINT) from None
    return found.st_dev, found.st_ino


# --- whether it serves the record -------------------------------------------------------------


def _not_an_index(db: apsw.Connection, file: Path, record: Path) -> IndexProblem:
    """At the default place, a file that is no database is a damaged index."""
    if file == record / NAME and not has_tables(db):
        return IndexDamaged(file, "the index is damaged: file is not a database", REBUILD_HINT)
    return not_ours(file)


def _check(db: apsw.Connection, file: Path, record: Path, start: RecordStart) -> None:
    check_version(db, file)
    origin, goes, _ = read_position(db, file)
    if origin != start.origin:
        what = f"is the index of another record, {origin}, not of {start.origin}"
        raise IndexOfOther(file, what, f"{OTHER_FILE_HINT}, or {REBUILD_HINT}")
    first = db.execute("SELECT min(number) FROM raw_segments").get or goes.segment
    if first < start.goes.segment:
        what = f"the index knows segments from {first:08d} on, the record begins later"
        raise IndexOutdated(file, what, REBUILD_HINT)
    if goes.offset and not has_frame(record, goes):
        raise _ahead(file, record, goes)


def _ahead(file: Path, record: Path, goes: IndexPosition) -> IndexAhead:
    """The error if the record does not contain the index's last frame."""
    last = read_segment(record, numbers(record)[-1]).after.seq
    what = f"the index has seen another record at seq {goes.seq} than there is now"
    if last < goes.seq:
        what = f"the index has seen records up to seq {goes.seq}, the record ends with {last}"
    todo = (
        "the record was put back from an older copy, or its end is gone: look into that first, "
        f"then {REBUILD_HINT}"
    )
    return IndexAhead(file, what, todo)
