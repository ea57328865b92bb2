"""A keeper of cursors in a file: how far each device's record goes, and not a word of what it says.

    journal = Journal.open(path, serial="SH-0042", fingerprint=fingerprint(key))
    await journal.keep(records)         # on return it is on the disk
    await journal.close()

Entries are appended and synced before anybody is told. After any error, and when whoever waits
gives up, the journal keeps nothing more: what the disk has taken is known only once it is opened
anew. One process at a time.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import structs

from drivers.journal_entries import (
    ENTRY_SIZE,
    Entry,
    JournalRefused,
    Kind,
    Reading,
    adopted,
    begin,
    kept,
    may_follow,
    pack,
    read,
)
from drivers.session import RECENT, Adoption
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink.plaintext import EventRecord

MOST_ENTRIES: Final = 8192
"""A file of 2 MiB; then a new one is begun with what still matters."""
ADOPTIONS_CARRIED: Final = 64
"""So many last adoptions go along into the new file."""
CLOSE_WAIT: Final = 10.0
"""Seconds that the disk has for what is being written at the end."""
_PRIVATE: Final = 0o600

Sync = Callable[[int], None]


class JournalFailed(OSError):
    """Nothing is kept any more. `first` is the first cause."""

    def __init__(self, path: Path, first: OSError | JournalRefused) -> None:
        number = first.errno if isinstance(first, OSError) else None
        super().__init__(number or errno.EIO, f"{path}: keeps nothing since: {first}")
        self.first = first


class Journal:
    """A Keeper. All writing is done by one thread of its own, so that the loop never waits."""

    def __init__(
        self,
        path: Path,
        reading: Reading,
        *,
        lock: int,
        file: int,
        thread: ThreadPoolExecutor,
        most: int,
        sync: Sync,
    ) -> None:
        self.path = path
        self.torn = reading.torn
        """Bytes of torn entries that were found at the end when it was opened."""
        self._lock = lock
        self._file = file
        self._most = most
        self._sync = sync
        self._entries = [one.entry for one in reading.entries]
        self._failed: OSError | JournalRefused | None = None
        self._closed = False
        self._cursor = NO_CURSOR
        self._recent: dict[int, bytes] = {}
        for entry in self._entries:
            self._learn(entry)
        self._thread = thread

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        serial: str,
        fingerprint: bytes,
        most: int = MOST_ENTRIES,
        sync: Sync = os.fdatasync,
    ) -> Journal:
        """The journal of this device, a new one if there is none. JournalRefused, OSError.

        Reads the file, which has 2 MiB at most."""
        mine = begin(serial, fingerprint)
        lock = _locked(path)
        file = -1
        try:
            with suppress(OSError):  # it is in nobody's way, but on a full disk it takes room
                _beside(path).unlink()
            if not path.exists():
                _write_new(path, [mine], sync)
            file = _opened(path)
            reading = _read(path, file, mine)
            if reading.torn:
                os.ftruncate(file, len(reading.entries) * ENTRY_SIZE)
                sync(file)
            thread = _begun(path)
        except BaseException:
            if file >= 0:
                os.close(file)
            os.close(lock)
            raise
        return cls(path, reading, lock=lock, file=file, thread=thread, most=most, sync=sync)

    def cursor(self) -> RecordCursor:
        """JournalFailed after any error: this journal does not know any more."""
        self._check()
        return self._cursor

    def recent(self) -> Mapping[int, bytes]:
        self._check()
        return MappingProxyType(self._recent)

    @property
    def adoptions(self) -> tuple[Entry, ...]:
        """Who accepted what, as far as the file goes back."""
        return tuple(one for one in self._entries if one.kind in (Kind.ADOPTED, Kind.CARRIED))

    async def keep(self, records: Sequence[EventRecord]) -> None:
        await self._do([kept(record) for record in records])

    async def adopt(self, adoption: Adoption) -> None:
        await self._do([adopted(adoption)])

    async def close(self) -> None:
        """What is being written is finished first. JournalFailed if that takes too long: the
        thread then lets go of the file when the disk lets go of the thread."""
        if self._closed:
            return
        self._closed = True
        letting_go = self._thread.submit(self._let_go)
        # Waited for by what comes after it: giving up waiting must not call it off.
        after = asyncio.get_running_loop().run_in_executor(self._thread, _reached)
        self._thread.shutdown(wait=False)
        try:
            async with asyncio.timeout(CLOSE_WAIT):
                await after
        except TimeoutError:
            late = OSError(errno.ETIMEDOUT, f"it has not ended within {CLOSE_WAIT:g} s")
            raise JournalFailed(self.path, self._fail(late)) from None
        self._thread.shutdown()
        letting_go.result()

    async def _do(self, entries: list[Entry]) -> None:
        if self._closed:
            raise JournalFailed(self.path, OSError(errno.EBADF, "it is closed"))
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._append, entries)
        except asyncio.CancelledError:
            # The thread goes on with what it began, and nobody hears what becomes of it.
            self._fail(OSError(errno.ETIMEDOUT, "whoever wanted it kept gave up waiting"))
            raise

    def _check(self) -> None:
        if self._failed is not None:
            raise JournalFailed(self.path, self._failed)

    def _fail(self, first: OSError | JournalRefused) -> OSError | JournalRefused:
        """The first cause."""
        self._failed = self._failed or first
        return self._failed

    # --- in the thread --------------------------------------------------------------------

    def _let_go(self) -> None:
        file, lock, self._file, self._lock = self._file, self._lock, -1, -1
        try:
            os.close(file)
        finally:
            os.close(lock)

    def _append(self, entries: list[Entry]) -> None:
        self._check()
        last, stands = self._entries[-1], self._cursor
        for entry in entries:
            if not may_follow(last, stands, entry):
                raise ValueError(f"record {entry.seq} is not the one after {stands}")
            last, stands = entry, entry.cursor or stands
        try:
            if len(self._entries) + len(entries) > self._most:
                self._begin_anew()
            self._write(entries)
        except (OSError, JournalRefused) as first:
            self._fail(first)
            raise
        for entry in entries:
            self._learn(entry)
        self._entries += entries

    def _write(self, entries: list[Entry]) -> None:
        durable = len(self._entries)
        data = b"".join(pack(entry, durable + at, durable) for at, entry in enumerate(entries, 1))
        written = os.pwrite(self._file, data, durable * ENTRY_SIZE)
        if written != len(data):
            raise OSError(errno.ENOSPC, f"{written} of {len(data)} bytes were written")
        self._sync(self._file)

    def _begin_anew(self) -> None:
        """A new file in the place of the old one: the last records, and who adopted what."""
        cut = len(self._entries) - RECENT
        if self._entries[cut - 1].kind is Kind.ADOPTED:
            cut -= 1  # what may follow an adoption is said by nothing else
        if cut < 1:
            return
        older, rest = self._entries[:cut], self._entries[cut:]
        mine, stands = older[0], NO_CURSOR
        for one in older:
            stands = one.cursor or stands
        place = (stands.epoch, stands.seq, stands.chain)
        head = Entry(Kind.BEGIN, *place, 0, mine.first, mine.second)
        adoptions = [one for one in older if one.kind in (Kind.ADOPTED, Kind.CARRIED)]
        carried = [structs.replace(one, kind=Kind.CARRIED) for one in adoptions]
        entries = [head, *carried[-ADOPTIONS_CARRIED:], *rest]
        _write_new(self.path, entries, self._sync)
        file = _opened(self.path)
        os.close(self._file)
        self._file = file
        self._entries = entries

    def _learn(self, entry: Entry) -> None:
        if entry.kind is Kind.CARRIED:
            return
        if entry.kind is Kind.ADOPTED or entry.epoch != self._cursor.epoch:
            self._recent = {}
        self._cursor = entry.cursor or self._cursor
        if entry.kind is Kind.KEPT:
            self._recent[entry.seq] = entry.chain
        self._recent.pop(entry.seq - RECENT, None)


def _reached() -> None:
    """The thread has come so far."""


def _begun(path: Path) -> ThreadPoolExecutor:
    """The journal's thread. It runs from here on: that there is none to be had is said now, and not
    when something has to be kept or let go of."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=f"journal {path.name}")
    try:
        thread.submit(_reached)
    except RuntimeError as problem:
        raise JournalRefused(path, f"cannot be written: {problem}") from None
    return thread


# --- the file ------------------------------------------------------------------------------------


def _locked(path: Path) -> int:
    """A lock beside the file, which itself is replaced now and then."""
    beside = path.with_name(f"{path.name}.lock")
    lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise JournalRefused(path, "is in use; one process at a time") from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _opened(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    found = os.fstat(file)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or mode != _PRIVATE:
        os.close(file)
        raise JournalRefused(
            path, f"has mode {mode:04o}; allowed: a file of this user with mode {_PRIVATE:04o}"
        )
    return file


def _read(path: Path, file: int, mine: Entry) -> Reading:
    size = os.fstat(file).st_size
    reading = read(path, os.pread(file, size, 0))
    first = reading.entries[0].entry
    if (first.first, first.second) != (mine.first, mine.second):
        raise JournalRefused(
            path,
            f"belongs to the device {first.first.decode()} with the key {first.second.hex()}, "
            f"not to {mine.first.decode()} with {mine.second.hex()}",
        )
    return reading


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _write_new(path: Path, entries: Sequence[Entry], sync: Sync) -> None:
    """The file with these entries, whole or not at all. What is left of it on a full disk would
    only fill that more."""
    beside = _beside(path)
    beside.unlink(missing_ok=True)  # left by one that was cut short; we hold the lock
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        try:
            data = b"".join(pack(one, at, at) for at, one in enumerate(entries, 1))
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, f"{beside} was not written whole")
            sync(file)
        finally:
            os.close(file)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):  # the first cause is what counts
            beside.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
