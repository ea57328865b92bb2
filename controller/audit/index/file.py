"""The file of an index: how it is opened, made and emptied, and what SQLite's errors mean for it.

It is opened by SQLite alone: in a process that has it open already, closing it once more by other
means would let go of the locks on it.
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
"""In the record's directory, where nobody names another place."""
REBUILD_HINT: Final = f"make it anew: {REBUILD}"
OTHER_FILE_HINT: Final = "name another file: --index FILE"
WAIT_MS: Final = 5_000
"""For somebody else who writes the index."""
_CACHE_KIB: Final = 32 * 1024
_PAGES_IN_WAL: Final = 4_000
_WAL_LEFT: Final = 64 * 1024 * 1024
"""Bytes to which the file beside it shrinks again."""
_SMALLEST: Final = 512
"""Bytes of a database; what is less and not empty is something else."""

_DAMAGED: Final = (
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.SQLError,
    apsw.ConstraintError,
    apsw.MismatchError,
)
"""The last three: rows or tables stand there that cannot stand in an index."""
_PLACE: Final = (
    apsw.CantOpenError,
    apsw.IOError,
    apsw.NoLFSError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
)


@contextmanager
def sqlite_errors(file: Path) -> Iterator[None]:
    """SQLite's errors as problems of this index."""
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


def open_for_writing(file: Path) -> apsw.Connection:
    """For writing; an empty file is made where there is none. IndexPlace."""
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
        try:
            if db.readonly("main"):
                raise IndexFileProblem(file, "the index cannot be written", OTHER_FILE_HINT)
            db.set_busy_timeout(WAIT_MS)
        except BaseException:
            db.close()
            raise
    return db


def _name(file: Path) -> str:
    """As SQLite takes it. Absolute: it gives some, such as :memory:, a meaning of their own."""
    name = str(file.absolute())
    try:
        name.encode()
    except UnicodeEncodeError:
        what = "the index cannot be there: its name, or its directory's, is not UTF-8"
        raise IndexFileProblem(printable(file), what, OTHER_FILE_HINT) from None
    return name


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All of what is done, or nothing of it. Nobody else writes meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite ends it by itself after some errors
            db.execute("ROLLBACK")
        raise


def application(db: apsw.Connection) -> int:
    """Whose file it is, as far as that can be told, however damaged the rest may be."""
    with _whatever_it_holds(db):
        return int(db.pragma("application_id"))


def is_empty(db: apsw.Connection, file: Path) -> bool:
    """Nothing was ever made of the file."""
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
    """IndexOutdated."""
    if db.pragma("user_version") != VERSION:
        raise IndexOutdated(file, "the index was made by another version", REBUILD_HINT)


def open_readonly(file: Path) -> apsw.Connection:
    """The index as it is, for who may not write it or does not want to. IndexProblem."""
    name = _name(file)
    with sqlite_errors(file):
        db = apsw.Connection(name, apsw.SQLITE_OPEN_READONLY)
        try:
            if application(db) != APPLICATION:
                raise not_ours(file)
            check_version(db, file)
            db.pragma("query_only", True)
            db.set_busy_timeout(WAIT_MS)
        except BaseException:
            db.close()
            raise
    return db


def create(db: apsw.Connection, file: Path, start: RecordStart) -> None:
    """The index of a record of which it has nothing yet, in an empty file."""
    with transaction(db):
        if is_empty(db, file):  # still, now that nobody else can make it
            for statement in SCHEMA:
                db.execute(statement)
            db.pragma("application_id", APPLICATION)
            db.pragma("user_version", VERSION)
            store_position(db, start.origin, start.goes, "{}")


def store_position(db: apsw.Connection, origin: str, goes: IndexPosition, standing: str) -> None:
    row = (origin, *goes, standing, _crc(origin, goes, standing))
    db.execute("INSERT OR REPLACE INTO goes VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def read_position(db: apsw.Connection, file: Path) -> tuple[str, IndexPosition, str]:
    """The origin, how far it goes, and what stands open there. IndexDamaged."""
    row = db.execute(_READ_GOES).fetchone()
    if row is None:
        raise IndexDamaged(file, "the index does not say how far it goes", REBUILD_HINT)
    origin, *where, standing, crc = row
    goes = IndexPosition(*where)
    if crc != _crc(origin, goes, standing):
        raise IndexDamaged(file, "the index is damaged where it says how far it goes", REBUILD_HINT)
    return origin, goes, standing


_READ_GOES: Final = "SELECT origin, segment, offset, until, seq, chain, standing, crc FROM goes"


def _crc(origin: str, goes: IndexPosition, standing: str) -> int:
    return crc32(repr((origin, tuple(goes), standing)).encode())


def set_wal_mode(db: apsw.Connection) -> None:
    """Whoever reads is never in the way of who writes, nor the other way. The two files beside it
    stay, empty, so that who may only read it can do so."""
    db.pragma("journal_mode", "WAL")
    stays = c_int(1)
    db.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, addressof(stays))
    db.pragma("wal_autocheckpoint", _PAGES_IN_WAL)
    db.pragma("journal_size_limit", _WAL_LEFT)
    db.pragma("cache_size", -_CACHE_KIB)
    # After a loss of power it may end earlier, and is whole all the same.
    db.pragma("synchronous", "NORMAL")


def wipe(db: apsw.Connection) -> None:
    """Everything is gone from the file, whatever was wrong with it. Who reads it still sees what
    was there when they began."""
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
