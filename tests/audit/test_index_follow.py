"""An index follows its record beside a running table, and is never in its way."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from controller.audit import index_follow
from controller.audit.book import Book
from controller.audit.index import Index, Step
from controller.audit.index_follow import Follower
from controller.audit.plain_data import BadData
from controller.audit.problems import (
    Damaged,
    IndexBusy,
    IndexPlace,
    NoRecord,
)
from controller.audit.segments import segment_file
from tests.audit.dealing import boot
from tests.audit.indexing import dealt, dump_of, rebuilt
from tests.audit.table import begun, note

LONG = 30.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


def test_it_has_what_is_recorded_soon_after(place: Path, tmp_path: Path) -> None:
    table = dealt("follow", 10)
    log = boot(place, table.game)
    book = Book(log)
    follower = Follower(place, durable=lambda: log.where.seq)

    async def play() -> int:
        seq = 0
        for entry in table.entries:
            with suppress(BadData):  # an amount that no record holds, refused by everybody
                seq = (await book.append(entry))[-1].seq
            follower.wake()
        return seq

    last = asyncio.run(play())
    assert follower.reaches(last, LONG)
    assert follower.problem is None
    book.close_now()
    follower.wake()
    assert follower.reaches(log.where.seq, LONG)
    follower.close()
    assert dump_of(place / "index.db") == rebuilt(place, tmp_path / "other.db")


def test_it_never_goes_further_than_what_is_on_the_disk(place: Path) -> None:
    log = begun(place)
    log.write([note("one"), note("two")])
    allowed = 3
    follower = Follower(place, durable=lambda: allowed)
    assert follower.reaches(3, LONG)
    for allowed in (4, 6):
        follower.wake()
        assert follower.reaches(allowed, LONG)
        assert follower.seq == allowed
    follower.close()
    log.close()


def test_it_catches_up_with_what_was_there_before(place: Path) -> None:
    table = dealt("before", 10)
    log = boot(place, table.game)
    for entry in table.entries:
        log.write([entry])
    log.close()
    follower = Follower(place)
    assert follower.reaches(log.where.seq, LONG)
    follower.close()


def test_it_ends_at_once_and_only_once(place: Path) -> None:
    begun(place).close()
    follower = Follower(place)
    assert follower.reaches(6, LONG)
    follower.close()
    follower.close()
    follower.wake()
    assert follower.problem is None
    assert not [one for one in threading.enumerate() if one.name.startswith("index")]


def test_it_ends_in_the_middle_of_catching_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is at is finished, and no more."""
    log = begun(place, size=1 << 20)
    log.write([note(f"{number}", 300) for number in range(500)])
    log.close()
    made, began = Event(), Event()
    step = Index.step

    def slowly(index: Index, durable: int | None, room: int) -> Step:
        assert made.wait(LONG)
        began.set()
        with follower._change:
            assert follower._change.wait_for(lambda: follower._ends, LONG)
        return step(index, durable, 3_000)

    monkeypatch.setattr(Index, "step", slowly)
    follower = Follower(place)
    made.set()
    assert began.wait(LONG)
    follower.close()
    assert 0 < follower.seq < 20
    with Index.open(place) as index:
        assert index.goes.seq == follower.seq


def test_its_first_problem_is_told_once_and_stays(place: Path) -> None:
    told: list[BaseException] = []
    log = begun(place)
    follower = Follower(place, failed=told.append)
    assert follower.reaches(4, LONG)
    segment_file(place, 1).rename(place / "away")
    follower.wake()
    assert not follower.reaches(5, LONG)
    assert isinstance(follower.problem, Damaged)
    assert "is missing" in str(follower.problem)
    (place / "away").rename(segment_file(place, 1))
    log.write([note("the table goes on")])
    follower.wake()
    assert not follower.reaches(5, 0)
    follower.close()
    log.close()
    assert told == [follower.problem]


def test_where_it_cannot_begin_it_says_so(place: Path, tmp_path: Path) -> None:
    told: list[BaseException] = []
    follower = Follower(place, failed=told.append)
    assert not follower.reaches(1, LONG)
    follower.close()
    begun(place).close()
    other = Follower(place, tmp_path / "nowhere" / "index.db", failed=told.append)
    assert not other.reaches(1, LONG)
    other.close()
    assert [type(one) for one in told] == [NoRecord, IndexPlace]


def test_a_fault_of_ours_is_told_as_well(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(place).close()

    def wrong(index: Index, durable: int | None, room: int) -> Step:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Index, "step", wrong)
    told: list[BaseException] = []
    follower = Follower(place, failed=told.append)
    assert not follower.reaches(1, LONG)
    follower.close()
    assert [str(one) for one in told] == ["ours"]


def test_an_index_that_can_be_made_anew_is(place: Path) -> None:
    begun(place).close()
    (place / "index.db").write_bytes(b"no index at all " * 100)
    said: list[str] = []
    follower = Follower(place, say=said.append)
    assert follower.reaches(6, LONG)
    follower.close()
    assert len(said) == 1
    assert "it is being made anew" in said[0]


def test_a_disk_that_has_stopped_does_not_hold_the_table_up(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    monkeypatch.setattr(index_follow, "CLOSE_WAIT", 0.05)
    began, may = Event(), Event()

    def stuck(index: Index, durable: int | None, room: int) -> Step:
        began.set()
        assert may.wait(LONG)
        return Step(0, False)

    monkeypatch.setattr(Index, "step", stuck)
    follower = Follower(place)
    assert began.wait(LONG)
    with pytest.raises(IndexBusy, match=r"has not ended within 0\.05 s"):
        follower.close()
    may.set()
    follower.close()
