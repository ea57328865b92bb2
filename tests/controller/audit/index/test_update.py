"""Of a record an index takes what is whole and on the disk; what is damaged stops it there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from controller.audit.errors import CannotWrite, RecordDamaged
from controller.audit.format.merkle import leaf_hash
from controller.audit.format.segments import chained, pack, segment_file
from controller.audit.index import Index
from controller.audit.read.reader import read_segment, segments
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.indexing import dump, same_as_rebuilt, some_rounds, written


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


def test_it_takes_no_more_than_is_known_to_be_on_the_disk(place: Path) -> None:
    log = begun(place)
    log.write([note("one"), note("two"), note("three")])
    with Index.open(place) as index:
        for durable in (0, 3, 6, 6, 7):
            index.catch_up(durable=durable)
            assert index.position.seq == durable
        index.catch_up(durable=99)
        assert index.position.seq == log.where.seq == 7
    log.close()


def test_what_nobody_vouches_for_is_synced_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = begun(place)
    log.close()
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

    def fails(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    with Index.open(place) as index:
        monkeypatch.setattr("controller.audit.index.frames.os.fdatasync", fails)
        with pytest.raises(CannotWrite, match=os.strerror(code)):
            index.catch_up()
        assert index.position.seq == 0
        monkeypatch.undo()
        assert index.catch_up() == 6


def test_where_nobody_can_write_there_is_nothing_to_sync(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(place).close()

    def fails(fd: int) -> None:
        raise OSError(errno.EROFS, "read-only")

    with Index.open(place) as index:
        monkeypatch.setattr("controller.audit.index.frames.os.fdatasync", fails)
        assert index.catch_up() == 6


@pytest.mark.parametrize("cut", [1, 8, 55, 56, 57, 200])
def test_of_a_frame_that_is_being_written_nothing_is_taken_yet(place: Path, cut: int) -> None:
    """Its bytes come one after the other; what is behind it is zero until then."""
    log = begun(place)
    log.write([note("one", 300)])
    segment = read_segment(place, 1)
    frame = segment.frames[-1]
    whole = segment.buffer[frame.offset : frame.end]
    _overwrite(place, frame.offset, whole[:cut].ljust(len(whole), b"\0"))
    with Index.open(place) as index:
        index.catch_up()
        assert index.position.seq == frame.seq - 1
        _overwrite(place, frame.offset, whole)
        assert index.catch_up() == 1
    log.close()


def test_a_frame_of_another_chain_is_not_taken(place: Path) -> None:
    """Left behind by an older copy, say: whole, and with the right seq."""
    log = begun(place)
    log.close()
    segment = read_segment(place, 1)
    seq, chain = segment.after.seq, segment.after.chain
    data = b'{"v":1}'
    right = pack(seq + 1, seq, chained(chain, leaf_hash(data)), data)
    wrong = pack(seq + 1, seq, chained(bytes(32), leaf_hash(data)), data)
    with Index.open(place) as index:
        index.catch_up()
        _overwrite(place, segment.end, wrong)
        assert index.catch_up() == 0
        _overwrite(place, segment.end, right)
        assert index.catch_up() == 1
        problems = dump(index.db)["problems"]
        assert problems == [(seq + 1, "not_understood")]


@pytest.mark.parametrize("data", [b"{}", b"no json", b"[" * 100_000, b'{"v":1,"seq":"\xff"}'])
def test_what_is_no_record_has_a_row_all_the_same(place: Path, data: bytes) -> None:
    """Who holds the key can write anything; the index goes on behind it."""
    log = begun(place, size=1 << 20)
    log.close()
    seq, chain = (after := read_segment(place, 1).after).seq, after.chain
    chain = chained(chain, leaf_hash(data))
    with Index.open(place) as index:
        index.catch_up()
        _overwrite(place, index.position.until, pack(seq + 1, seq, chain, data))
        assert index.catch_up() == 1
        said = dump(index.db)
    assert said["problems"] == [(seq + 1, "not_understood")]
    assert said["records"][-1][0] == seq + 1
    assert said["records"][-1][1] == said["records"][-2][1]


def _overwrite(place: Path, offset: int, data: bytes, number: int = 1) -> None:
    with segment_file(place, number).open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_damage_that_the_record_goes_on_behind_is_told(place: Path) -> None:
    written(place, some_rounds())
    third = list(segments(place))[2]
    frame = third.frames[5]
    _overwrite(place, frame.offset + 60, b"\xff", 3)
    with Index.open(place) as index:
        for _ in range(2):
            with pytest.raises(
                RecordDamaged, match=f"00000003.seg: offset {frame.offset}: no whole"
            ):
                index.catch_up()
            assert index.position.seq == frame.seq - 1
        _overwrite(place, frame.offset + 60, third.buffer[frame.offset + 60 :][:1], 3)
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
