"""A disk without room for the next segment: announced early, refused cleanly, ended regularly."""

import errno
import os
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit import verify_record
from controller.audit.errors import DiskFull, LogFailed
from controller.audit.format.segments import spare_file
from controller.audit.log import Log, RecordRoom
from controller.audit.read.reader import segments
from controller.audit.verify import verify
from tests.support.audit.record.table import (
    SMALL,
    FakeClock,
    FastDisk,
    FaultyDisk,
    begun,
    kinds_of,
    note,
    submitted,
)

NO_ROOM = [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE]


def fill_disk(log: Log, disk: FaultyDisk, number: int = errno.ENOSPC) -> None:
    """No further segment can be made, and the log knows it."""
    log.spares.take()  # the one that was preallocated
    disk.fails["create"] = OSError(number, os.strerror(number))
    log.spares.prepare()
    known_full(log)


def known_full(log: Log) -> None:
    with pytest.raises(DiskFull):
        log.spares.take()


def filled(log: Log) -> int:
    """The number of entries that a log accepts before it is full."""
    for count in range(SMALL):
        try:
            log.write([note(f"{count}", 100)])
        except DiskFull:
            return count
    raise AssertionError


@pytest.mark.parametrize("number", NO_ROOM)
def test_temporary_errors_are_retried(place: Path, number: int) -> None:
    """A smaller entry is refused too: else a table would go on for one moment, again and again."""
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        fill_disk(log, disk, number)
        log.write([note("a", 9000)])
        for _ in range(3):
            with pytest.raises(DiskFull, match="no room for the next segment"):
                log.write([note("b", 9000)])
            with pytest.raises(DiskFull, match=r"free 16 KiB on its disk; nothing is lost"):
                log.write([note("a small one", 100)])
        disk.fails.clear()
        log.write([note("a small one", 100)])
        log.write([note("b", 9000)])
    assert (len(submitted(place)), len(list(segments(place)))) == (3, 2)
    assert verify(place).findings == ()


def test_a_full_disk_leaves_room_for_a_regular_end(place: Path) -> None:
    """Everything that was acknowledged is signed, and `closed` is the last record."""
    disk = FaultyDisk()
    log = begun(place, disk=disk)
    fill_disk(log, disk)
    written = filled(log)
    assert 0 < written < 40
    assert log.room() == RecordRoom("No space left on device", 0, log.room().written)
    log.sign()
    log.write([replace(note("counts", 1500), reserved=True)])
    log.close()
    assert kinds_of(place)[-3:] == ["note", "closed", "checkpoint"]
    assert len(submitted(place)) == written + 1
    assert verify(place).findings == ()
    assert verify_record.verify(verify_record.Reading(place, None, None), None, print)["exit"] == 0
    begun(place).close()
    assert len(submitted(place)) == written + 1


def test_a_clock_that_is_set_does_not_take_the_end_from_a_full_disk(place: Path) -> None:
    disk, clock = FaultyDisk(), FakeClock()
    log = begun(place, disk=disk, clock=clock)
    fill_disk(log, disk)
    filled(log)
    clock.set(3600)
    log.close()
    assert kinds_of(place)[-3:] == ["clock", "closed", "checkpoint"]


def test_a_segment_that_can_be_made_has_no_reserve(place: Path) -> None:
    with closing(begun(place)) as log:
        at = log.room().written
        log.write([note("to the last byte", SMALL - 2500 - at % SMALL)])
        assert log.room().problem == ""
    assert len(list(segments(place))) == 1


@pytest.mark.parametrize("number", NO_ROOM)
def test_room_for_the_next_segment_is_announced_before_it_is_needed(
    place: Path, number: int
) -> None:
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        until_ready(log)
        before = log.room()
        assert (before.problem, before.left > SMALL) == ("", True)
        fill_disk(log, disk, number)
        room = log.room()
        assert (room.problem, room.written) == (os.strerror(number), before.written)
        assert 0 < room.left == before.left - SMALL - END
        log.spares.retry()
        known_full(log)
        assert log.room() == room
        disk.fails.clear()
        log.spares.retry()
        until_ready(log)
        assert log.room() == before
        log.spares.retry()  # nothing to do
        assert not spare_file(place).read_bytes().strip(b"\0")


END = SMALL // 4
"""The reserve of such a small segment."""


def until_ready(log: Log) -> None:
    deadline = time.monotonic() + 10
    while not log.spares.ready:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_spare_that_was_taken_is_not_made_again_by_a_retry(place: Path) -> None:
    """It is about to become a segment: a new spare would replace its file."""
    with closing(begun(place)) as log:
        taken = log.spares.take()
        before = taken.stat().st_ino
        log.spares.retry()
        assert not log.spares.ready
        assert taken.stat().st_ino == before


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_spare_is_made_after_any_error_that_has_ended(place: Path, number: int) -> None:
    """It is announced too: the log fails at the end of the segment, unless it is made before."""
    disk = FaultyDisk()
    with closing(begun(place, disk=disk)) as log:
        log.spares.take()
        disk.fails["create"] = OSError(number, os.strerror(number))
        log.spares.prepare()
        with pytest.raises(LogFailed):
            log.spares.take()
        assert log.room().problem == os.strerror(number)
        disk.fails.clear()
        log.spares.retry()
        until_ready(log)
        assert log.room().problem == ""
        log.write([note("to the next segment", 9000)])
        log.write([note("to the next segment", 9000)])
    assert len(list(segments(place))) == 2


def test_a_retry_after_the_end_does_nothing(place: Path) -> None:
    disk = FaultyDisk()
    log = begun(place, disk=disk)
    fill_disk(log, disk)
    log.close()
    log.spares.retry()


class Small(FastDisk):
    """A disk with so many bytes, which it counts or not."""

    def __init__(self, *, says: bool) -> None:
        self.free = 0
        self.says = says
        self.written = 0

    def free_bytes(self, fd: int) -> int:
        return self.free if self.says else super().free_bytes(fd)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        if not any(data):
            self.written += len(data)
            if self.written > self.free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(fd, data, offset)


@pytest.mark.parametrize("says", [True, False])
def test_a_spare_that_does_not_fit_leaves_the_space_to_others(place: Path, says: bool) -> None:
    disk = Small(says=says)
    disk.free = 1 << 30
    with closing(begun(place, disk=disk)) as log:
        log.spares.take().unlink()
        disk.free, disk.written = SMALL - 1, 0
        log.spares.prepare()
        known_full(log)
        assert not spare_file(place).exists()
        assert (disk.written == 0) is says
