"""The journal on a failing or stalling disk: it keeps nothing more, and the loop goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drivers.journal import JournalFailed
from drivers.journal_entries import ENTRY_SIZE, JournalRefused
from drivers.session import RECENT
from firmware_protocol.host import NO_CURSOR
from tests.support.drivers.journal_book import Book, adoption, cursor, ring


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "SH-1.journal")


# --- errors -------------------------------------------------------------------------------------


class Failing:
    """A sync that fails from a certain call on."""

    def __init__(self, good: int) -> None:
        self.good = good

    def __call__(self, file: int) -> None:
        self.good -= 1
        if self.good < 0:
            raise OSError(errno.EIO, "the disk says no")


def test_after_an_error_nothing_is_kept_any_more(book: Book) -> None:
    records = ring(4)
    book.do()

    async def main() -> None:
        failing = Failing(1)
        journal = book.open(sync=failing)
        await journal.keep(records[:1])
        with pytest.raises(OSError, match="the disk says no"):
            await journal.keep(records[1:2])
        failing.good = 99
        for _ in range(2):
            with pytest.raises(JournalFailed, match=r"keeps nothing since: .*the disk says no"):
                await journal.keep(records[1:2])
        with pytest.raises(JournalFailed):
            await journal.adopt(adoption())
        # It does not even say any more what it keeps: nobody is to begin a session there.
        for said in (journal.cursor, journal.recent):
            with pytest.raises(JournalFailed, match="the disk says no"):
                said()
        await journal.close()

    asyncio.run(main())
    # What the disk has taken all the same is known only now.
    assert book.do()[0] == cursor(records[1])


def test_an_error_while_it_begins_anew_loses_nothing(book: Book) -> None:
    records = ring(60 + RECENT)
    book.do(*[records[at : at + 20] for at in range(0, 40 + RECENT, 20)])
    stood = book.do()
    for good in range(2):
        with pytest.raises(OSError, match="the disk says no"):
            book.do(records[stood[0].seq :], most=100, sync=Failing(good))
        found, _ = book.do()
        assert found.seq in (stood[0].seq, records[-1].seq)
        stood = book.do()


def test_a_short_write_is_an_error(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    records = ring(3)
    book.do(records[:1])
    whole = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, data, at: whole(file, data[:100], at))
        with pytest.raises(OSError, match="100 of 512 bytes"):
            book.do(records[1:])
    assert book.do()[0] == cursor(records[0])


NO_ROOM = OSError(errno.ENOSPC, "No space left on device")


def full(file: int, data: bytes) -> int:
    raise NO_ROOM


def nearly_full(file: int, data: bytes) -> int:
    return _write(file, data[:100])


_write = os.write


@pytest.mark.parametrize("write", [full, nearly_full])
def test_a_new_file_that_a_full_disk_does_not_take_is_not_left_there(
    book: Book, monkeypatch: pytest.MonkeyPatch, write: Callable[[int, bytes], int]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match=r"No space left|not written whole") as refused:
            book.do()
        assert refused.value.errno == errno.ENOSPC
    assert [one.name for one in book.path.parent.iterdir()] == [f"{book.path.name}.lock"]
    records = ring(60 + RECENT)
    book.do(records[: 40 + RECENT])
    stood, files = book.path.read_bytes(), set(book.path.parent.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match=r"No space left|not written whole"):
            book.do(records[40 + RECENT :], most=100)
    assert set(book.path.parent.iterdir()) == files
    assert book.path.read_bytes() == stood
    assert book.do(records[40 + RECENT :], most=100)[0] == cursor(records[-1])


@pytest.mark.parametrize("what", ["sync", "replace"])
def test_a_new_file_that_does_not_take_its_place_is_not_left_there(
    book: Book, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        if what == "replace":
            patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="Read-only"):
            book.do(**({"sync": fail} if what == "sync" else {}))
    assert not book.path.with_name(f"{book.path.name}.new").exists()
    book.do(ring(1))


def test_the_first_cause_stands_where_what_is_left_cannot_be_removed_either(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stays(path: Path, missing_ok: bool = False) -> None:
        if not missing_ok:
            raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        patch.setattr(Path, "unlink", stays)
        with pytest.raises(OSError, match="No space left"):
            book.do()
    assert book.path.with_name(f"{book.path.name}.new").exists()
    book.do(ring(1))


def test_the_lock_is_let_go_of_whatever_becomes_of_the_file(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = os.close

    async def main() -> None:
        journal = book.open()

        def fails(file: int) -> None:
            close(file)
            if file == journal_file:
                raise OSError(errno.EIO, "the disk says no")

        journal_file = journal._file
        with monkeypatch.context() as patch:
            patch.setattr(os, "close", fails)
            with pytest.raises(OSError, match="the disk says no"):
                await journal.close()

    asyncio.run(main())
    book.do(ring(1))


def test_a_failed_opening_holds_nothing(book: Book) -> None:
    book.do()
    book.path.chmod(0o644)
    for _ in range(3):
        with pytest.raises(JournalRefused, match="0644"):
            book.do()
    book.path.chmod(0o600)
    book.do()


# --- the loop -----------------------------------------------------------------------------------


def test_the_loop_does_not_wait_for_the_disk(book: Book) -> None:
    book.do()
    may_end = threading.Event()

    def slow(_: int) -> None:
        assert may_end.wait(10)

    async def main() -> int:
        journal = book.open(sync=slow)
        keeping = asyncio.create_task(journal.keep(ring(1)))
        turns = 0
        while turns < 100:
            await asyncio.sleep(0)
            turns += 1
        assert not keeping.done()
        assert journal.cursor() == NO_CURSOR
        may_end.set()
        await keeping
        await journal.close()
        return journal.cursor().seq

    assert asyncio.run(main()) == 1


class Stalling:
    """A sync that takes as long as the test wants, and says when it has begun."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, _: int) -> None:
        self.begun.set()
        assert self.may_end.wait(10)

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 10)


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_whoever_gives_up_waiting_does_not_tear_it(book: Book, how: str) -> None:
    """Whether it is kept nobody knows, so nothing more is until the file has been read anew."""
    records = ring(4)
    book.do()
    disk = Stalling()

    async def main() -> None:
        journal = book.open(sync=disk)
        keeping = asyncio.create_task(journal.keep(records[:2]))
        behind = asyncio.create_task(journal.keep(records[2:3]))
        await disk.has_begun()
        if how == "cancelled":
            keeping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await keeping
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(keeping, 0)
        disk.may_end.set()
        for late in (journal.keep(records[2:]), journal.keep(records[:2]), behind):
            with pytest.raises(JournalFailed, match="gave up waiting"):
                await late
        with pytest.raises(JournalFailed):
            await journal.adopt(adoption())
        await journal.close()
        with pytest.raises(JournalFailed):
            journal.cursor()

    asyncio.run(main())
    assert book.do() == (cursor(records[1]), {1: records[0].chain, 2: records[1].chain})
    assert book.do(records[2:])[0] == cursor(records[3])


def test_a_journal_that_is_not_its_own_any_more_has_failed(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it begins anew somebody puts another file into its place, or touches its mode."""
    records = ring(60 + RECENT)
    book.do(records[: 40 + RECENT])

    async def main() -> None:
        journal = book.open(most=100)
        replace = os.replace

        def touched(new: Path, file: Path) -> None:
            replace(new, file)
            file.chmod(0o644)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", touched)
            with pytest.raises(JournalRefused, match="0644"):
                await journal.keep(records[40 + RECENT :])
        for _ in range(2):
            with pytest.raises(JournalFailed, match=r"keeps nothing since: .*0644"):
                await journal.keep(records[40 + RECENT :])
        await journal.close()

    asyncio.run(main())
    book.path.chmod(0o600)
    assert book.do()[0] == cursor(records[39 + RECENT])


# --- the end ------------------------------------------------------------------------------------


def test_closing_does_not_wait_for_ever(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivers.journal.CLOSE_WAIT", 0.05)
    book.do()
    disk = Stalling()

    async def main() -> None:
        journal = book.open(sync=disk)
        keeping = asyncio.create_task(journal.keep(ring(1)))
        await disk.has_begun()
        with pytest.raises(JournalFailed, match="has not ended within"):
            await journal.close()
        await journal.close()  # once is enough
        with pytest.raises(JournalRefused, match="in use"):
            book.open()
        disk.may_end.set()
        await keeping

    asyncio.run(main())

    async def free() -> bool:
        try:
            await book.open().close()
        except JournalRefused:
            return False
        return True

    # What was begun is finished, and then the thread lets go of the file.
    deadline = time.monotonic() + 10
    while not asyncio.run(free()):
        assert time.monotonic() < deadline
    assert book.do()[0].seq == 1


def test_what_is_closed_keeps_nothing(book: Book) -> None:
    async def main() -> None:
        journal = book.open()
        await journal.close()
        await journal.close()
        with pytest.raises(JournalFailed, match="it is closed"):
            await journal.keep(ring(1))
        with pytest.raises(JournalFailed, match="it is closed"):
            await journal.adopt(adoption())

    asyncio.run(main())
    assert book.do()[0] == NO_CURSOR


def test_what_is_told_is_synced(book: Book) -> None:
    synced: list[int] = []

    def count(file: int) -> None:
        synced.append(os.fstat(file).st_size)

    book.do(sync=count)
    assert synced == [ENTRY_SIZE]
    records = ring(5)
    book.do(records[:2], records[2:], sync=count)
    assert synced == [ENTRY_SIZE, 3 * ENTRY_SIZE, 6 * ENTRY_SIZE]
