"""The file of an index: opening, creating, emptying, and SQLite's errors.

Only SQLite opens it: closing it by other means in the same process would release SQLite's locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import addressof, c_int
from pathlib import Path
from typing import Final
from zlib import crc32

import apsw

from controller.audit.errors import (
    REBUILD,
    IndexBusy,
    IndexDamaged,
    IndexDiskFull,
    IndexFileProblem,
    IndexOfOther,
    IndexOutdated,
)
from controller.audit.files import MODE
from controller.audit.index.frames import IndexPosition, RecordStart
from controller.audit.index.schema import APPLICATION, SCHEMA, VERSION
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
        todo = f"free some, or {OTHER_FILE_HINT}; nothing of the record is lost"
        raise IndexDiskFull(file, "there is no room for the index", todo) from problem
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
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(file, flags, MODE))
    except FileExistsError:
        if not file.is_file():
            raise IndexFileProblem(file, "is no file", OTHER_FILE_HINT) from None
    except OSError as problem:
        what = f"the index cannot be made: {problem.strerror}"
        raise IndexFileProblem(file, what, OTHER_FILE_HINT) from None
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
        what = "the index cannot be there: its name, or its directory's, is not UTF-8"
        raise IndexFileProblem(printable(file), what, OTHER_FILE_HINT) from None
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
    """Return the application id, even of a damaged file."""
    with _whatever_it_holds(db):
        return int(db.pragma("application_id"))


def is_empty(db: apsw.Connection, file: Path) -> bool:
    """Return whether the file was never used."""
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
            raise not_ours(file)
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
            store_position(db, start.origin, start.goes, "{}")


def store_position(db: apsw.Connection, origin: str, goes: IndexPosition, standing: str) -> None:
    row = (origin, *goes, standing, _crc(origin, goes, standing))
    db.execute("INSERT OR REPLACE INTO goes VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def read_position(db: apsw.Connection, file: Path) -> tuple[str, IndexPosition, str]:
    """Return the origin, the position and the open state. Raises IndexDamaged."""
    row = db.execute(_READ_POSITION).fetchone()
    if row is None:
        raise IndexDamaged(file, "the index does not say how far it goes", REBUILD_HINT)
    origin, *where, standing, crc = row
    goes = IndexPosition(*where)
    if crc != _crc(origin, goes, standing):
        raise IndexDamaged(file, "the index is damaged where it says how far it goes", REBUILD_HINT)
    return origin, goes, standing


_READ_POSITION: Final = "SELECT origin, segment, offset, until, seq, chain, standing, crc FROM goes"


def _crc(origin: str, goes: IndexPosition, standing: str) -> int:
    return crc32(repr((origin, tuple(goes), standing)).encode())


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
    with _whatever_it_holds(db):
        db.execute("VACUUM")


@contextmanager
def _whatever_it_holds(db: apsw.Connection) -> Iterator[None]:
    db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        yield
    finally:
        db.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


def not_ours(file: Path) -> IndexOfOther:
    what = "holds something else than the index of a record"
    return IndexOfOther(file, what, f"put it away yourself, or {OTHER_FILE_HINT}")
