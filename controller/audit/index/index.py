"""The index of a record: a SQLite file to search records. The segments remain authoritative.

    with Index.open_or_rebuild(record, say=print) as index:
        index.catch_up()

It can be rebuilt from the segments at any time. An update only reads segments and does not block
the record's writer. Readers of the index see a snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import addressof, c_int
from pathlib import Path
from typing import Final, NamedTuple, Self
from zlib import crc32

import apsw
import msgspec

from controller.audit.errors import (
    REBUILD,
    IndexAhead,
    IndexBusy,
    IndexDamaged,
    IndexDiskFull,
    IndexFileProblem,
    IndexOfOther,
    IndexOutdated,
    IndexProblem,
)
from controller.audit.files import MODE
from controller.audit.format.segments import numbers
from controller.audit.index.entries import index_record
from controller.audit.index.frames import (
    IndexPosition,
    RecordStart,
    has_frame,
    read_new_frames,
    record_start,
)
from controller.audit.index.rows import INSERTED, OpenState, Rows, Words
from controller.audit.index.schema import APPLICATION, SCHEMA, VERSION
from controller.audit.read.reader import read_segment
from controller.errors import printable

NAME: Final = "index.db"
"""The default file, in the record's directory."""
REBUILD_HINT: Final = f"make it anew: {REBUILD}"
OTHER_FILE_HINT: Final = "name another file: --index FILE"
WAIT_MS: Final = 5_000
"""Timeout for another process that writes the index."""
_CACHE_KIB: Final = 32 * 1024
_PAGES_IN_WAL: Final = 4_000
_WAL_LEFT: Final = 64 * 1024 * 1024
"""Bytes to which the write-ahead log is truncated."""
_SMALLEST: Final = 512
"""Minimum size of a database in bytes."""

_DAMAGED: Final = (
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.SQLError,
    apsw.ConstraintError,
    apsw.MismatchError,
)
"""The last three are raised by rows or tables that do not fit an index."""
_PLACE: Final = (
    apsw.CantOpenError,
    apsw.IOError,
    apsw.NoLFSError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)


@contextmanager
def sqlite_errors(file: Path) -> Iterator[None]:
    """Raise SQLite's errors as IndexProblem."""
    try:
        yield
    except (*_DAMAGED, UnicodeDecodeError) as problem:
        raise IndexDamaged(file, f"the index is damaged: {problem}", REBUILD_HINT) from problem
    except apsw.FullError as problem:
        raise IndexDiskFull(
            file,
            "there is no room for the index",
            f"free some, or {OTHER_FILE_HINT}; nothing of the record is lost",
        ) from problem
    except (apsw.BusyError, apsw.LockedError) as problem:
        what = "somebody else writes the index for too long"
        raise IndexBusy(file, what, "try again when that is done") from problem
    except _PLACE as problem:
        what = f"the index cannot be read or written: {problem}"
        raise IndexFileProblem(file, what, OTHER_FILE_HINT) from problem


@contextmanager
def closed_on_error(db: apsw.Connection, file: Path) -> Iterator[None]:
    """Close `db` if the block fails; SQLite's errors are raised as IndexProblem."""
    try:
        with sqlite_errors(file):
            yield
    except BaseException:
        db.close()
        raise


def open_for_writing(file: Path) -> apsw.Connection:
    """Open a file for writing; it is created if it does not exist. Raises IndexFileProblem."""
    name = _name(file)
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
    except FileExistsError:
        if not file.is_file():
            raise IndexFileProblem(file, "is no file", OTHER_FILE_HINT) from None
    except OSError as problem:
        raise IndexFileProblem(
            file, f"the index cannot be made: {problem.strerror}", OTHER_FILE_HINT
        ) from None
    with sqlite_errors(file):
        db = apsw.Connection(name, apsw.SQLITE_OPEN_READWRITE)
    with closed_on_error(db, file):
        if db.readonly("main"):
            raise IndexFileProblem(file, "the index cannot be written", OTHER_FILE_HINT)
        db.set_busy_timeout(WAIT_MS)
    return db


def _name(file: Path) -> str:
    """The name for SQLite. Absolute, since names such as :memory: have a special meaning."""
    name = str(file.absolute())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise IndexFileProblem(
            printable(file),
            "the index cannot be there: its name, or its directory's, is not UTF-8",
            OTHER_FILE_HINT,
        ) from None
    return name


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Run the block atomically, with an exclusive write lock."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite rolls back automatically after some errors
            db.execute("ROLLBACK")
        raise


def application(db: apsw.Connection) -> int:
    """Returns the application id, even of a damaged file."""
    with _ignoring_content(db):
        return int(db.pragma("application_id"))


def is_empty(db: apsw.Connection, file: Path) -> bool:
    """Returns whether the file was never used."""
    size = file.stat().st_size
    if size < _SMALLEST:
        return size == 0
    try:
        return application(db) == 0 and not has_tables(db)
    except (apsw.NotADBError, apsw.CorruptError):
        return False


def has_tables(db: apsw.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_schema").get)


def check_version(db: apsw.Connection, file: Path) -> None:
    """Raise IndexOutdated if another version made the index."""
    if db.pragma("user_version") != VERSION:
        raise IndexOutdated(file, "the index was made by another version", REBUILD_HINT)


def open_readonly(file: Path) -> apsw.Connection:
    """Open an index read-only. Raises IndexProblem."""
    name = _name(file)
    with sqlite_errors(file):
        db = apsw.Connection(name, apsw.SQLITE_OPEN_READONLY)
    with closed_on_error(db, file):
        if application(db) != APPLICATION:
            raise other_file_error(file)
        check_version(db, file)
        db.pragma("query_only", True)
        db.set_busy_timeout(WAIT_MS)
    return db


def create(db: apsw.Connection, file: Path, start: RecordStart) -> None:
    """Create the tables of an empty index."""
    with transaction(db):
        if is_empty(db, file):  # checked again, under the write lock
            for statement in SCHEMA:
                db.execute(statement)
            db.pragma("application_id", APPLICATION)
            db.pragma("user_version", VERSION)
            store_position(db, start.origin, start.position, "{}")


def store_position(
    db: apsw.Connection, origin: str, position: IndexPosition, standing: str
) -> None:
    db.execute(
        "INSERT OR REPLACE INTO goes VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        (origin, *position, standing, _crc(origin, position, standing)),
    )


def read_position(db: apsw.Connection, file: Path) -> tuple[str, IndexPosition, str]:
    """Returns the origin, the position and the open state. Raises IndexDamaged."""
    row = db.execute(_READ_POSITION).fetchone()
    if row is None:
        raise IndexDamaged(file, "the index does not say how far it goes", REBUILD_HINT)
    origin, *where, standing, crc = row
    position = IndexPosition(*where)
    if crc != _crc(origin, position, standing):
        raise IndexDamaged(file, "the index is damaged where it says how far it goes", REBUILD_HINT)
    return origin, position, standing


_READ_POSITION: Final = "SELECT origin, segment, offset, until, seq, chain, standing, crc FROM goes"


def _crc(origin: str, position: IndexPosition, standing: str) -> int:
    return crc32(repr((origin, tuple(position), standing)).encode())


def set_wal_mode(db: apsw.Connection) -> None:
    """Set the journal mode in which readers and the writer do not block each other.

    The two files beside the index persist, so that a read-only user can open it.
    """
    db.pragma("journal_mode", "WAL")
    stays = c_int(1)
    db.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, addressof(stays))
    db.pragma("wal_autocheckpoint", _PAGES_IN_WAL)
    db.pragma("journal_size_limit", _WAL_LEFT)
    db.pragma("cache_size", -_CACHE_KIB)
    # After a power loss the index may end earlier, but is valid.
    db.pragma("synchronous", "NORMAL")


def wipe(db: apsw.Connection) -> None:
    """Delete all content, whatever it is. Readers keep their snapshot."""
    with _ignoring_content(db):
        db.execute("VACUUM")


@contextmanager
def _ignoring_content(db: apsw.Connection) -> Iterator[None]:
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        yield
    finally:
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


def other_file_error(file: Path) -> IndexOfOther:
    return IndexOfOther(
        file,
        "holds something else than the index of a record",
        f"put it away yourself, or {OTHER_FILE_HINT}",
    )


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
                raise _no_index_error(db, file, record)
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
                raise other_file_error(file)
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
                position = self.position
                progress(
                    IndexProgress(count, position.seq, position.segment, numbers(self.record)[-1])
                )
        return count

    def step(self, durable: int | None = None, room: int = BATCH_BYTES) -> IndexStep:
        """Run one transaction with up to `room` bytes of records.

        `durable` is the last seq that is known to be durable; without it the records are synced
        first. Raises RecordDamaged, CannotWrite and IndexProblem; the index is unchanged then.
        """
        if _inode(self.file) != self._inode:
            raise IndexFileProblem(
                self.file,
                "the index is no longer the file that was opened: somebody has replaced it",
                "open it again",
            )
        with sqlite_errors(self.file), transaction(self.db):
            return self._index_batch(durable, room)

    def _index_batch(self, durable: int | None, room: int) -> IndexStep:
        db = self.db
        origin, position, text = read_position(db, self.file)
        found = read_new_frames(self.record, position, room, durable)
        if not found.frames:
            return IndexStep(0, found.more)
        if position != self._words_at:
            self._words = Words(db.execute("SELECT word, id FROM words"))
        # New words are not in the index until the transaction is committed.
        self._words_at = None
        state = _decode_state(text)
        rows = Rows(self._words, state)
        for segment, start, frame in found.frames:
            index_record(rows, segment, start + frame.offset, frame.seq, frame.data)
        self._insert(rows)
        store_position(db, origin, found.position, msgspec.json.encode(state).decode())
        self._words_at = found.position
        return IndexStep(len(found.frames), found.more)

    def _insert(self, rows: Rows) -> None:
        db = self.db
        db.executemany("INSERT INTO words VALUES (?, ?)", rows.words.take_new())
        for table in INSERTED:
            db.executemany(table.insert, rows.inserted[table.name])
        for table, changed_rows in rows.spans.changed_rows():
            db.executemany(table.put, changed_rows)
        db.executemany(_CORRECTED, rows.spans.corrected)


def open_index(record: Path, file: Path | None = None) -> apsw.Connection:
    """Open the index read-only.

    Raises NoRecord, RecordDamaged, and IndexProblem if it does not fit this record.
    """
    file = file or record / NAME
    start = record_start(record)
    db = open_readonly(file)
    with closed_on_error(db, file):
        _check(db, file, record, start)
    return db


def has_more(record: Path, db: apsw.Connection, file: Path) -> bool:
    """Returns whether the record has more records than the index. Raises RecordDamaged, CannotWrite
    and IndexDamaged."""
    with sqlite_errors(file):
        position = read_position(db, file)[1]
    return bool(read_new_frames(record, position, 1, position.seq + 1).frames)


def _inode(file: Path) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError as problem:
        raise IndexFileProblem(
            file, f"the index cannot be looked at: {problem.strerror}", OTHER_FILE_HINT
        ) from None
    return found.st_dev, found.st_ino


# --- whether it serves the record -------------------------------------------------------------


def _no_index_error(db: apsw.Connection, file: Path, record: Path) -> IndexProblem:
    """At the default place, a file that is no database is a damaged index."""
    if file == record / NAME and not has_tables(db):
        return IndexDamaged(file, "the index is damaged: file is not a database", REBUILD_HINT)
    return other_file_error(file)


def _check(db: apsw.Connection, file: Path, record: Path, start: RecordStart) -> None:
    check_version(db, file)
    origin, position, _ = read_position(db, file)
    if origin != start.origin:
        what = f"is the index of another record, {origin}, not of {start.origin}"
        raise IndexOfOther(file, what, f"{OTHER_FILE_HINT}, or {REBUILD_HINT}")
    first = db.execute("SELECT min(number) FROM raw_segments").get or position.segment
    if first < start.position.segment:
        what = f"the index knows segments from {first:08d} on, the record begins later"
        raise IndexOutdated(file, what, REBUILD_HINT)
    if position.offset and not has_frame(record, position):
        raise _ahead_error(file, record, position)


def _ahead_error(file: Path, record: Path, position: IndexPosition) -> IndexAhead:
    """The error if the record does not contain the index's last frame."""
    last = read_segment(record, numbers(record)[-1]).after.seq
    what = f"the index has seen another record at seq {position.seq} than there is now"
    if last < position.seq:
        what = f"the index has seen records up to seq {position.seq}, the record ends with {last}"
    return IndexAhead(
        file,
        what,
        "the record was put back from an older copy, or its end is gone: look into that first, "
        f"then {REBUILD_HINT}",
    )
