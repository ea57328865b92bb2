"""An index catches up with its record, whatever happens meanwhile, and says when it is not its."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Final

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.audit.errors import (
    CannotWrite,
    IndexBusy,
    IndexFileProblem,
    NoRecord,
    RecordDamaged,
)
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.records import ChainPosition
from controller.audit.format.segments import HEAD_SIZE, RecordFrame, chained, pack, segment_file
from controller.audit.index import Index, IndexProgress, frames
from controller.audit.index import index as index_file
from controller.audit.log import Log
from controller.audit.read.reader import good_frames, read_segment, segments
from tests.support.audit.record.dealing import boot
from tests.support.audit.record.table import begun, failing, note
from tests.support.audit.tools.indexing import (
    SMALL,
    dump,
    held,
    indexed,
    rebuilt,
    same_as_rebuilt,
    some_rounds,
    write_all,
    written,
)
from tests.support.audit.tools.outside import overwrite


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


# --- catching up ------------------------------------------------------------------------------


def test_a_new_index_takes_the_whole_record_and_then_nothing(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("one"), note("two")])
    with Index.open(place) as index:
        assert index.position.seq == 0
        assert index.catch_up() == 8
        assert (index.position.seq, index.position.chain) == (log.where.seq, log.where.chain)
        assert index.catch_up() == 0
    assert (place / "index.db").stat().st_mode & 0o777 == 0o640 & ~_umask()
    with Index.open(place) as index:
        assert index.position.seq == log.where.seq


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_where_no_record_has_begun_no_index_is_made(place: Path, file: Path) -> None:
    with pytest.raises(NoRecord):
        Index.open(place, file)
    (place / "segments").mkdir(parents=True)
    with pytest.raises(NoRecord, match="no record has begun here"):
        Index.open(place, file)
    assert not file.exists()


_OPS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 30), st.integers(1, 8)),
    st.tuples(st.just("step"), st.integers(1, 40_000), st.just(0)),
    st.tuples(st.just("catch up"), st.just(0), st.just(0)),
    st.tuples(st.just("sign"), st.just(0), st.just(0)),
    st.tuples(st.just("boot"), st.just(0), st.just(0)),
    st.tuples(st.just("open"), st.just(0), st.just(0)),
)


@settings(max_examples=40)
@given(st.lists(_OPS, max_size=25))
def test_however_it_catches_up_it_comes_to_the_same(ops: list[tuple[str, int, int]]) -> None:
    table = some_rounds()
    left = list(table.entries)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "record"
        log = boot(place, table.game, size=SMALL)
        index = Index.open(place)
        try:
            for what, many, together in ops:
                match what:
                    case "write":
                        write_all(log, left[:many], together)
                        left = left[many:]
                    case "step":
                        index.step(room=many)
                    case "catch up":
                        index.catch_up()
                        assert index.position.seq == log.where.seq
                    case "sign":
                        log.sign()
                    case "boot":
                        log.close()
                        log = boot(place, table.game, size=SMALL)
                    case "open":
                        index.close()
                        index = Index.open(place)
            index.catch_up()
            assert index.position.seq == log.where.seq
            assert same_as_rebuilt(index)
        finally:
            index.close()
            log.close()


def test_beside_a_writer_it_takes_what_is_there(place: Path) -> None:
    """Segments end and begin while it reads them."""
    table = some_rounds()
    log = boot(place, table.game, size=SMALL)
    writer = Thread(target=write_all, args=(log, table.entries))
    with Index.open(place) as index:
        writer.start()
        went = []
        while writer.is_alive():
            index.catch_up()
            went.append(index.position.seq)
        writer.join()
        log.close()
        index.catch_up()
        assert index.position.seq == log.where.seq
        assert same_as_rebuilt(index)
    assert went == sorted(went)
    assert len(list(segments(place))) > 5


def test_a_segment_may_end_while_it_is_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes into it after it was read, and before the next one begins, is not passed over."""
    log = begun(place)

    def and_then(buffer: bytes, at: int, where: ChainPosition) -> Iterator[RecordFrame]:
        yield from good_frames(buffer, at, where)
        if len(list(segments(place))) == 1:
            for number in range(60):
                log.write([note(f"{number}", 400)])

    with Index.open(place) as index:
        monkeypatch.setattr("controller.audit.index.frames.good_frames", and_then)
        index.catch_up()
        monkeypatch.undo()
        assert len(list(segments(place))) > 1
        index.catch_up()
        assert index.position.seq == log.where.seq
        assert same_as_rebuilt(index)
    log.close()


def test_progress_is_told_after_each_part(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(place, some_rounds())
    told: list[IndexProgress] = []
    monkeypatch.setattr(Index.step, "__defaults__", (None, 50_000))
    with Index.open(place) as index:
        count = index.catch_up(told.append)
        assert told[-1].records == told[-1].seq == count == index.position.seq
    assert len(told) > 5
    assert [one.seq for one in told] == sorted({one.seq for one in told})
    assert {one.segments for one in told} == {len(list(segments(place)))}


def test_one_step_takes_no_more_than_it_has_room_for(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("one", 300), note("two", 300), note("three", 300)])
    with Index.open(place) as index:
        taken = []
        while (step := index.step(room=1)).records:
            taken.append(step)
        assert ({step.records for step in taken}, index.position.seq) == ({1}, log.where.seq)
        assert step.more is False


def test_a_segment_larger_than_a_window_is_read_in_several(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(place, some_rounds())
    longest = max(len(frame.data) for one in segments(place) for frame in one.frames)
    with Index.open(place) as index:
        monkeypatch.setattr(frames, "WINDOW", longest + HEAD_SIZE)
        index.catch_up()
        monkeypatch.undo()
        assert same_as_rebuilt(index)


# --- killed, and without room -----------------------------------------------------------------

_STEPPING: Final = """
import sys
from pathlib import Path
from controller.audit.index.index import Index
with Index.open(Path(sys.argv[1]), Path(sys.argv[2])) as index:
    for _ in sys.stdin:
        index.step(room=4_000)
        print(index.position.seq, flush=True)
"""


def test_killed_in_the_middle_it_is_an_index_that_ends_earlier(place: Path, file: Path) -> None:
    written(place, some_rounds())
    whole = rebuilt(place, file.parent / "whole.db")
    ended = went = 0
    last = max(row[0] for row in whole["records"])
    for lines in (1, 2, 7, 3, 1, 12, 5):
        command = [sys.executable, "-c", _STEPPING, str(place), str(file)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as stepping:
            assert stepping.stdin is not None
            assert stepping.stdout is not None
            for _ in range(lines):
                print(file=stepping.stdin, flush=True)
                went = int(stepping.stdout.readline())
            print(file=stepping.stdin, flush=True)  # one more step, and killed in it
            stepping.send_signal(signal.SIGKILL)
        assert stepping.returncode == -signal.SIGKILL
        ended += went < last
        with Index.open(place, file) as index:
            seq = index.position.seq
            assert seq >= went
            now = dump(index.db)
        for name, at in (("records", 0), ("cards", 1), ("seats", 1), ("bets", 0)):
            assert now[name] == [row for row in whole[name] if row[at] <= seq]
    assert ended > 3
    with indexed(place, file) as index:
        assert dump(index.db) == whole


def test_without_room_it_says_so_and_stays_what_it_was(place: Path, file: Path) -> None:
    written(place, some_rounds())
    with Index.open(place, file) as index:
        index.step(room=20_000)
        before = dump(index.db)
        index.db.pragma("max_page_count", index.db.pragma("page_count") + 2)
        with pytest.raises(IndexFileProblem, match=r"no room for the index.*--index FILE"):
            index.catch_up()
        index.db.pragma("max_page_count", 1 << 20)
        assert dump(index.db)["records"] >= before["records"]
        index.catch_up()
        assert same_as_rebuilt(index)


# --- several at once --------------------------------------------------------------------------


def test_two_may_catch_up_the_same_index(place: Path) -> None:
    written(place, some_rounds())
    with Index.open(place) as one, Index.open(place) as other:
        turns = 0
        while one.step(room=9_000).records and other.step(room=7_000).records:
            turns += 1
        assert turns > 3
        one.catch_up()
        assert other.position == one.position
        assert same_as_rebuilt(other)


def test_who_writes_it_too_long_is_told_of(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(place).close()
    monkeypatch.setattr(index_file, "WAIT_MS", 20)
    with Index.open(place) as one, Index.open(place) as other:
        with held(one), pytest.raises(IndexBusy, match="somebody else writes"):
            other.catch_up()
        assert other.catch_up() == 6


def test_who_reads_is_not_in_the_way_and_sees_what_there_was(place: Path) -> None:
    written(place, some_rounds())
    with Index.open(place) as index:
        index.step(room=30_000)
        with closing(apsw.Connection(str(place / "index.db"))) as reader:
            reader.execute("BEGIN")
            before = dump(reader)
            index.catch_up()
            assert dump(reader) == before
            with Index.rebuild(place) as again:
                assert dump(reader) == before
                assert dump(again.db)["records"] == []
            reader.execute("COMMIT")
            assert dump(reader)["records"] == []
            index.catch_up()
            assert dump(reader) == dump(index.db)
        assert same_as_rebuilt(index)


def test_an_index_that_was_put_away_is_not_written_on(place: Path) -> None:
    log: Log = begun(place)
    with indexed(place) as index:
        (place / "index.db").unlink()
        log.write([note("more")])
        with pytest.raises(IndexFileProblem, match="cannot be looked at"):
            index.catch_up()
        with Index.open(place) as other:
            other.catch_up()
            with pytest.raises(IndexFileProblem, match="somebody has replaced it"):
                index.catch_up()
    log.close()


def test_how_far_it_goes_is_a_place_in_the_record(place: Path) -> None:
    written(place, some_rounds())
    last = list(segments(place))[-1]
    frame = last.frames[-1]
    with indexed(place) as index:
        assert index.position == frames.IndexPosition(
            last.number, frame.offset, frame.end, frame.seq, frame.chain
        )


# --- an index reads what is whole and durable; damage stops it --------------------------------


def test_it_takes_no_more_than_is_known_to_be_on_the_disk(place: Path) -> None:
    with closing(begun(place)) as log:
        log.write([note("one"), note("two"), note("three")])
        with Index.open(place) as index:
            for durable in (0, 3, 6, 6, 7):
                index.catch_up(durable=durable)
                assert index.position.seq == durable
            index.catch_up(durable=99)
            assert index.position.seq == log.where.seq == 7


def test_what_nobody_vouches_for_is_synced_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()
    synced: list[str] = []

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr("controller.audit.index.frames.os.fdatasync", sync)
    with Index.open(place) as index:
        index.catch_up(durable=5)
        assert synced == []
        index.catch_up()
        assert synced == [str(segment_file(place, 1))]
        index.catch_up()
        assert len(synced) == 1


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_what_cannot_be_synced_is_not_taken(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    begun(place).close()

    with Index.open(place) as index:
        monkeypatch.setattr("controller.audit.index.frames.os.fdatasync", failing(code))
        with pytest.raises(CannotWrite, match=os.strerror(code)):
            index.catch_up()
        assert index.position.seq == 0
        monkeypatch.undo()
        assert index.catch_up() == 6


def test_where_nobody_can_write_there_is_nothing_to_sync(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()

    with Index.open(place) as index:
        monkeypatch.setattr("controller.audit.index.frames.os.fdatasync", failing(errno.EROFS))
        assert index.catch_up() == 6


@pytest.mark.parametrize("cut", [1, 8, 55, 56, 57, 200])
def test_of_a_frame_that_is_being_written_nothing_is_taken_yet(place: Path, cut: int) -> None:
    """Its bytes come one after the other; what is behind it is zero until then."""
    with closing(begun(place)) as log:
        log.write([note("one", 300)])
        segment = read_segment(place, 1)
        frame = segment.frames[-1]
        whole = segment.buffer[frame.offset : frame.end]
        overwrite(segment_file(place, 1), frame.offset, whole[:cut].ljust(len(whole), b"\0"))
        with indexed(place) as index:
            assert index.position.seq == frame.seq - 1
            overwrite(segment_file(place, 1), frame.offset, whole)
            assert index.catch_up() == 1


def test_a_frame_of_another_chain_is_not_taken(place: Path) -> None:
    """Left behind by an older copy, say: whole, and with the right seq."""
    begun(place).close()
    segment = read_segment(place, 1)
    seq, chain = segment.after.seq, segment.after.chain
    data = b'{"v":1}'
    right = pack(seq + 1, seq, chained(chain, leaf_hash(data)), data)
    wrong = pack(seq + 1, seq, chained(bytes(32), leaf_hash(data)), data)
    with indexed(place) as index:
        overwrite(segment_file(place, 1), segment.end, wrong)
        assert index.catch_up() == 0
        overwrite(segment_file(place, 1), segment.end, right)
        assert index.catch_up() == 1
        assert dump(index.db)["problems"] == [(seq + 1, "not_understood")]


@pytest.mark.parametrize("data", [b"{}", b"no json", b"[" * 100_000, b'{"v":1,"seq":"\xff"}'])
def test_what_is_no_record_has_a_row_all_the_same(place: Path, data: bytes) -> None:
    """Who holds the key can write anything; the index goes on behind it."""
    begun(place, size=1 << 20).close()
    seq, chain = (after := read_segment(place, 1).after).seq, after.chain
    chain = chained(chain, leaf_hash(data))
    with indexed(place) as index:
        overwrite(segment_file(place, 1), index.position.until, pack(seq + 1, seq, chain, data))
        assert index.catch_up() == 1
        said = dump(index.db)
    assert (said["problems"], said["records"][-1][0]) == ([(seq + 1, "not_understood")], seq + 1)
    assert said["records"][-1][1] == said["records"][-2][1]


def test_damage_that_the_record_goes_on_behind_is_told(place: Path) -> None:
    written(place, some_rounds())
    third = list(segments(place))[2]
    frame = third.frames[5]
    overwrite(third.file, frame.offset + 60, b"\xff")
    with Index.open(place) as index:
        for _ in range(2):
            with pytest.raises(
                RecordDamaged, match=f"00000003.seg: offset {frame.offset}: no whole"
            ):
                index.catch_up()
            assert index.position.seq == frame.seq - 1
        third.file.write_bytes(third.buffer)
        index.catch_up()
        assert same_as_rebuilt(index)


def test_a_segment_that_is_gone_is_told(place: Path) -> None:
    written(place, some_rounds())
    with Index.open(place) as index:
        index.step(room=40_000)
        gone = segment_file(place, index.position.segment)
        gone.rename(place / "gone")
        with pytest.raises(RecordDamaged, match="is missing"):
            index.catch_up()
        (place / "gone").rename(gone)
        index.catch_up()
        assert same_as_rebuilt(index)
