"""The journal as a file: torn, damaged, in use, in a folder where others have been."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from pathlib import Path

import pytest

from drivers.journal_entries import ENTRY_SIZE, JournalRefused, pack, read
from drivers.session import RECENT
from firmware_protocol.host import NO_CURSOR
from firmware_protocol.tablelink.plaintext import EventRecord
from tests.support.drivers.journal_book import Book, cursor, ring


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "SH-1.journal")


# --- torn, damaged, missing -----------------------------------------------------------------------


def kept_one_by_one(book: Book, count: int) -> list[EventRecord]:
    records = ring(count)
    book.do(*[[one] for one in records])
    return records


def test_a_torn_last_entry_was_never_told_about(book: Book) -> None:
    records = kept_one_by_one(book, 5)
    whole = book.path.read_bytes()
    for size in range(len(whole) - ENTRY_SIZE, len(whole)):
        book.path.write_bytes(whole[:size])
        found, _ = book.do()
        assert found == cursor(records[3])
        assert book.path.stat().st_size == len(whole) - ENTRY_SIZE
    assert book.do(records[4:])[0] == cursor(records[4])


def test_sectors_of_a_last_batch_may_be_missing_in_any_order(book: Book) -> None:
    records = ring(12)
    book.do(records[:4], records[4:])
    whole = book.path.read_bytes()
    for lost in range(5, 13):
        book.path.write_bytes(
            whole[: lost * ENTRY_SIZE] + bytes(ENTRY_SIZE) + whole[(lost + 1) * ENTRY_SIZE :]
        )
        found, _ = book.do()
        assert found == cursor(records[lost - 2])
        assert book.do()[0] == found


def test_a_hole_in_what_was_kept_is_refused(book: Book) -> None:
    kept_one_by_one(book, 6)
    whole = book.path.read_bytes()
    for at in range(ENTRY_SIZE, len(whole) - 2 * ENTRY_SIZE, 13):
        book.path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(JournalRefused, match="were kept, and are damaged or missing"):
            book.do()
    cut = whole[: 3 * ENTRY_SIZE] + whole[4 * ENTRY_SIZE :]
    book.path.write_bytes(cut)
    with pytest.raises(JournalRefused, match="entry 4 has the number 5"):
        book.do()
    assert book.path.read_bytes() == cut  # nothing was trimmed


@pytest.mark.parametrize("data", [b"", b"\0", bytes(ENTRY_SIZE), b"TJ" + bytes(1000)])
def test_a_journal_without_its_beginning_is_refused(book: Book, data: bytes) -> None:
    book.do()
    book.path.write_bytes(data)
    with pytest.raises(JournalRefused, match="first entry is damaged"):
        book.do()


def test_a_sequence_that_nobody_wrote_is_refused(book: Book) -> None:
    records = kept_one_by_one(book, 3)
    entries = [one.entry for one in read(book.path, book.path.read_bytes()).entries]
    for wrong in ([entries[0], entries[1], entries[3]], [entries[0], entries[0]]):
        book.path.write_bytes(b"".join(pack(one, at, at - 1) for at, one in enumerate(wrong, 1)))
        with pytest.raises(JournalRefused, match=r"entry \d (keeps record|is a BEGIN)"):
            book.do()
    assert records


def test_another_devices_journal_is_refused(book: Book) -> None:
    book.do()
    with pytest.raises(JournalRefused, match="belongs to the device SH-1"):
        book.do(serial="SH-2")
    with pytest.raises(JournalRefused, match="belongs to the device SH-1"):
        book.do(fingerprint=bytes(16))
    with pytest.raises(ValueError, match="16 bytes"):
        book.do(fingerprint=b"short")


# --- who may use it -----------------------------------------------------------------------------


def test_two_users_are_one_too_many(book: Book) -> None:
    async def main() -> None:
        journal = book.open()
        with pytest.raises(JournalRefused, match="in use"):
            book.open()
        await journal.close()
        await book.open().close()

    asyncio.run(main())


def test_another_process_is_kept_out_and_death_lets_go(book: Book) -> None:
    book.do()
    code = (
        "import fcntl, os, sys, time\n"
        f"fd = os.open({str(book.path) + '.lock'!r}, os.O_RDWR)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX); print('locked', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            with pytest.raises(JournalRefused, match="in use"):
                book.do()
        finally:
            other.kill()
    assert book.do() == (NO_CURSOR, {})


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o700, 0o400])
def test_a_file_that_others_may_touch_is_refused(book: Book, mode: int) -> None:
    book.do()
    book.path.chmod(mode)
    with pytest.raises(JournalRefused, match=f"has mode {mode:04o}; allowed: .* mode 0600"):
        book.do()


def test_a_link_to_another_file_is_refused(book: Book, tmp_path: Path) -> None:
    other = Book(tmp_path / "other")
    other.do()
    book.path.symlink_to(other.path)
    with pytest.raises(OSError, match="symbolic links"):
        book.do()


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o400])
def test_what_was_left_of_a_new_file_is_in_nobodys_way(book: Book, mode: int) -> None:
    left = Path(f"{book.path}.new")
    left.write_bytes(b"TJ" * 900)
    left.chmod(mode)
    assert book.do(ring(1))[0].seq == 1
    assert book.path.stat().st_mode & 0o777 == 0o600
    assert not left.exists()
    # It goes when the journal is opened, and not only when the next new file is written.
    left.write_bytes(b"TJ" * 900)
    book.do()
    assert not left.exists()
    left.symlink_to(book.path)
    assert book.do(*[[one] for one in ring(40 + RECENT)[1:]], most=100)[0].seq == 40 + RECENT
    assert not left.is_symlink()


def test_a_lock_that_cannot_be_had_is_let_go_of(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", none_left)
        with pytest.raises(OSError, match="no locks available") as refused:
            book.do()
    assert refused.value.errno == errno.ENOLCK
    book.do()
