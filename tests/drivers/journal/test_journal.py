"""The file journal of cursors: what it keeps survives, and what it cannot know it refuses."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from drivers.journal_entries import Kind, pack, unpack
from drivers.session import RECENT
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages.enums import CardFlags, Verdict
from firmware_protocol.messages.shoe import CardRead
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, chained
from tests.support.drivers.journal_book import EPOCH, Book, adoption, cursor, ring


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "SH-1.journal")


# --- keeping ------------------------------------------------------------------------------------


def test_a_new_journal_knows_nothing(book: Book) -> None:
    assert book.do() == (NO_CURSOR, {})
    assert book.do() == (NO_CURSOR, {})
    assert book.path.stat().st_mode & 0o777 == 0o600
    assert Path(f"{book.path}.lock").stat().st_mode & 0o777 == 0o600


def test_what_is_kept_is_there_again(book: Book) -> None:
    records = ring(20)
    expected = {one.seq: one.chain for one in records}
    assert book.do(records[:3], records[3:4], records[4:]) == (cursor(records[-1]), expected)
    assert book.do() == (cursor(records[-1]), expected)


def test_it_goes_on_where_it_ended(book: Book) -> None:
    records = ring(RECENT + 60)
    for at in range(0, len(records), 10):
        book.do(records[at : at + 10])
    found, recent = book.do()
    assert found == cursor(records[-1])
    assert recent == {one.seq: one.chain for one in records[-RECENT:]}


@pytest.mark.parametrize("wrong", [[1], [3], [1, 3], [2, 2], [2, 4]])
def test_only_the_next_record_is_kept(book: Book, wrong: list[int]) -> None:
    records = ring(4)
    book.do(records[:1])
    with pytest.raises(ValueError, match="is not the one after"):
        book.do([records[seq - 1] for seq in wrong])
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(ring(1, epoch=EPOCH + 1, first=2))
    assert book.do()[0] == cursor(records[0])


def test_it_holds_no_card(book: Book) -> None:
    body = CardRead(7, 211, 37, 91, 38, CardFlags.REVERSED, 433, 66, b"saltysecret")
    record = chained(NO_CHAIN, epoch=EPOCH, seq=1, boot=1, t_us=1, event=body)
    book.do([record])
    data = book.path.read_bytes()
    assert b"salty" not in data
    entry = unpack(book.entries[1])
    assert entry is not None
    # All of the entry is known: the record's place and chain, and nothing else.
    assert book.entries[1] == pack(entry.entry, 2, 1)
    assert (entry.entry.kind, entry.entry.first, entry.entry.second) == (Kind.KEPT, b"", b"")
    assert (entry.entry.epoch, entry.entry.seq, entry.entry.chain) == (EPOCH, 1, record.chain)


# --- adoptions ----------------------------------------------------------------------------------


def test_after_an_adoption_any_record_of_the_ring_follows(book: Book) -> None:
    before, after = ring(3), ring(4, first=11)
    found, recent = book.do(before, adoption(oldest=11, head=14, next=11), after)
    assert found == cursor(after[-1])
    assert recent == {one.seq: one.chain for one in after}
    assert book.do() == (found, recent)


def test_until_its_first_record_an_adopted_ring_may_be_adopted_again(book: Book) -> None:
    before = ring(3)
    found, recent = book.do(before, adoption(oldest=11, head=14, next=11))
    assert (found, recent) == (cursor(before[-1]), {})
    assert book.do() == (found, recent)
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(ring(1, epoch=EPOCH + 1))


def test_an_adoption_that_came_to_nothing_gives_way_to_the_record_as_it_was(book: Book) -> None:
    """The ring was adopted, and is gone again; what comes goes on where the record stands."""
    before, other = ring(5), EPOCH + 9
    book.do(before[:3], adoption(epoch=other, oldest=4, head=9, next=4))
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(before[4:])
    found, recent = book.do(before[3:4])
    assert (found, recent) == (cursor(before[3]), {4: before[3].chain})
    assert book.do(before[4:])[0] == cursor(before[4])
    # It has given way for good.
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(ring(1, epoch=other, first=4))
    assert book.do()[0] == cursor(before[4])


def test_an_adoption_that_says_where_it_stands_does_not_give_way(book: Book) -> None:
    before, other = ring(4), EPOCH + 9
    book.do(before[:3], adoption(epoch=other, oldest=1, head=9, next=1))
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(before[3:])
    assert book.do(ring(1, epoch=other))[0].epoch == other


def test_an_adoption_without_any_record_before_it_does_not_stop_the_first_one(book: Book) -> None:
    book.do(adoption(oldest=4, head=9, next=4))
    with pytest.raises(ValueError, match="is not the one after"):
        book.do(ring(1, epoch=EPOCH + 1))
    assert book.do(ring(2, first=6))[0].seq == 7


def test_what_gave_way_goes_along_into_the_new_file(book: Book) -> None:
    records = ring(400)
    book.do(records[:3], adoption(epoch=EPOCH + 9, oldest=4, head=9, next=4), records[3:20])
    for at in range(20, len(records), 20):
        book.do(records[at : at + 20], most=180)
    assert book.do()[0] == cursor(records[-1])
    assert b"Ann" in book.path.read_bytes()


@pytest.mark.parametrize(
    ("ring_as_it_was", "stands"),
    [
        ({"oldest": 10, "head": 9, "next": 10}, RecordCursor(EPOCH, 9, b"headhead")),
        ({"oldest": 5, "head": 9, "next": 10}, RecordCursor(EPOCH, 9, b"headhead")),
        ({"oldest": 1, "head": 9, "next": 1}, RecordCursor(EPOCH, 0, NO_CHAIN)),
        ({"oldest": 1, "head": 0, "next": 1, "chain": NO_CHAIN}, RecordCursor(EPOCH, 0, NO_CHAIN)),
    ],
)
def test_an_adopted_ring_whose_chain_is_known_is_where_the_record_stands(
    book: Book, ring_as_it_was: dict[str, Any], stands: RecordCursor
) -> None:
    assert book.do(adoption(**ring_as_it_was)) == (stands, {})
    assert book.do() == (stands, {})


def test_who_adopted_is_kept(book: Book) -> None:
    async def main() -> list[tuple[bytes, bytes, int]]:
        journal = book.open()
        await journal.adopt(adoption(by=("Ánn", "Bob"), verdict=Verdict.FORK))
        await journal.close()
        journal = book.open()
        await journal.close()
        return [(one.first, one.second, one.verdict) for one in journal.adoptions]

    assert asyncio.run(main()) == [("Ánn".encode(), b"Bob", Verdict.FORK)]


@pytest.mark.parametrize("name", ["", "x" * 109, "é" * 55, "A\0B"])
def test_a_name_that_has_no_room_is_refused(book: Book, name: str) -> None:
    with pytest.raises(ValueError, match="1 to 108 bytes"):
        book.do(adoption(by=("Ann", name)))


def test_the_longest_names_have_room(book: Book) -> None:
    async def main() -> list[tuple[bytes, bytes]]:
        journal = book.open()
        await journal.adopt(adoption(by=("x" * 64, "Ж" * 54)))
        await journal.close()
        journal = book.open()
        await journal.close()
        return [(one.first, one.second) for one in journal.adoptions]

    assert asyncio.run(main()) == [(b"x" * 64, "Ж".encode() * 54)]


# --- a new file ---------------------------------------------------------------------------------


def test_a_large_journal_begins_anew(book: Book) -> None:
    book.options["most"] = 400
    records = ring(1498)
    book.do(adoption(next=1, oldest=1))
    for at in range(0, len(records), 7):
        found, recent = book.do(records[at : at + 7])
        assert found == cursor(records[at + 6])
        assert len(book.entries) <= 400
        assert recent == {one.seq: one.chain for one in records[max(0, at + 7 - RECENT) : at + 7]}
    assert b"Ann" in book.path.read_bytes()
    assert sorted(file.name for file in book.path.parent.iterdir()) == [
        "SH-1.journal",
        "SH-1.journal.lock",
    ]


def test_it_begins_anew_within_one_opening(book: Book) -> None:
    records = ring(900)
    batches = [records[at : at + 8] for at in range(0, len(records), 8)]
    found, recent = book.do(*batches, most=200)
    assert found == cursor(records[-1])
    assert book.do() == (found, recent)
    assert len(book.entries) < 200


def test_adoptions_go_along_into_the_new_file(book: Book) -> None:
    records: list[EventRecord] = []
    for number in range(5):
        records = ring(100, first=1 + 1000 * number)
        book.do(adoption(by=(f"Ann{number}", "Bob"), next=records[0].seq), records, most=150)
    data = book.path.read_bytes()
    assert [number for number in range(5) if f"Ann{number}".encode() in data] == [0, 1, 2, 3, 4]
    assert book.do()[0] == cursor(records[-1])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_it_was_through_it_is_read_back_as_it_stood(book: Book, seed: int) -> None:
    """Records, adoptions that came about or gave way, new files and restarts, in any order."""
    dice = random.Random(seed)
    epoch, records = EPOCH, ring(2000)
    known = book.do(records[:1])[0]
    for number in range(60):
        steps: list[Any] = []
        if dice.random() < 0.3:
            other = dice.choice((epoch, EPOCH + 1 + number))
            begins = dice.choice((1, dice.randint(2, 50)))
            steps.append(adoption(epoch=other, oldest=begins, next=begins, head=999))
            if begins == 1 or dice.random() < 0.5:
                epoch, records = other, ring(2000, epoch=other)[begins - 1 :]
            else:
                records = records[known.seq - records[0].seq + 1 :]
        else:
            records = records[known.seq - records[0].seq + 1 :]
        count = dice.choice((0, 1, 8, 40))
        steps.append(records[:count])
        stood = book.do(*steps, most=dice.choice((140, 200, 8192)))
        assert book.do() == stood
        known = stood[0]
        if count:
            assert known == cursor(records[count - 1])
        else:
            steps.append(records[:1])
            known = book.do(records[:1])[0]
            assert known == cursor(records[0])
