"""Clock changes; stalled, full and read-only disks; exhausted descriptors."""

import errno
import threading
import time
from pathlib import Path

import pytest
from msgspec import json

from controller.audit.errors import DiskFull, RecordProblem
from controller.audit.files import RealDisk
from controller.audit.format.records import ClockData
from controller.audit.format.segments import pack, segment_file
from controller.audit.log import LogWriter, RecordOpening
from controller.audit.read.reader import segments
from tests.support.audit.interrupted import Interrupted
from tests.support.audit.record.table import (
    TABLE,
    FakeClock,
    begun,
    everything,
    handed_in,
    kinds,
    note,
)

HOUR = 3600.0
YEAR = 365 * 24 * HOUR


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.mark.parametrize("seconds", [-HOUR, YEAR, -FakeClock().utc / 1e6, -0.6, 0.6, -0.3])
def test_large_clock_changes_are_recorded(place: Path, seconds: float) -> None:
    """One hour back, one year forward, to 1970, and slightly beyond the tolerance."""
    clock = FakeClock()
    log = begun(place, clock=clock)
    log.write([note("before")])
    clock.set(seconds)
    log.write([note("after")])
    log.sign()
    log.close()
    found = everything(place)
    at = kinds(found).index("clock")
    assert kinds(found)[at - 1 : at + 2] == ["note", "clock", "note"]
    was = json.decode(found[at].data, type=ClockData).utc_was
    assert abs(found[at].utc - was - seconds * 1e6) < 1000
    assert [one.mono for one in found] == sorted(one.mono for one in found)
    later = begun(place, clock=FakeClock(found[-1].utc + 1, 5))
    later.close()
    opening = RecordOpening.at(place, table=TABLE)
    opening.close()
    assert opening.closed()


class Scripted(RealDisk):
    """Fails as configured, once or until reconfigured."""

    def __init__(self) -> None:
        self.fails: dict[str, int] = {}
        self.stalls = 0.0

    def _may(self, what: str) -> None:
        if what in self.fails:
            raise OSError(self.fails[what], errno.errorcode[self.fails[what]])

    def create(self, file: Path) -> int:
        self._may("create")
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._may("write")
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        if self.stalls:
            time.sleep(self.stalls)  # a stalled disk
            self.stalls = 0.0
        super().sync(fd)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE])
def test_temporary_errors_are_retried(place: Path, number: int) -> None:
    disk = Scripted()
    log = begun(place, disk=disk)
    log.spares.take()  # the one that was preallocated
    disk.fails = {"create": number}
    log.write([note("a", 9000)])
    for _ in range(3):
        with pytest.raises(DiskFull, match="no room for the next segment"):
            log.write([note("b", 9000)])
        log.write([note("small things still fit", 100)])
    disk.fails = {}
    log.write([note("b", 9000)])
    log.close()
    assert len(handed_in(place)) == 5
    assert len(list(segments(place))) == 2


def test_a_stalled_disk_delays_and_loses_nothing(place: Path) -> None:
    disk = Scripted()
    book = LogWriter(begun(place, disk=disk, size=256 * 1024))
    disk.stalls = 3.0
    waiting = [book.submit(note(f"{at}")) for at in range(50)]
    assert not waiting[0].done()
    assert [one.result(20)[0].seq for one in waiting] == list(range(5, 55))
    book.close_now()
    assert len(handed_in(place)) == 50


def test_two_writers_in_one_process_exclude_each_other(place: Path) -> None:
    log = begun(place)
    found: list[str] = []

    def other() -> None:
        try:
            begun(place).close()
        except RecordProblem as problem:
            found.append(type(problem).__name__)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    log.close()
    assert found == ["InUse"]


@pytest.mark.parametrize(("at", "size"), [("sync", 10), ("rename", 9000)])
def test_an_interrupted_log_writes_nothing_more(place: Path, at: str, size: int) -> None:
    disk = Interrupted()
    log = begun(place, disk=disk)
    log.write([note("kept", 8000)])
    disk.at = at
    with pytest.raises(KeyboardInterrupt):
        log.write([note("half-way", size)])
    disk.at = ""
    log.close()  # as the interrupted caller does
    found = kinds(everything(place))
    assert "closed" not in found
    assert handed_in(place)[0] == (5, b'{"text":"%s"}' % b"kept".ljust(8000, b"."))
    begun(place).close()
    assert kinds(everything(place))[-2:] == ["closed", "checkpoint"]


def test_a_quarantined_tail_is_recorded_after_an_interrupted_rotation(place: Path) -> None:
    """A quarantined tail, and a new segment before a boot has recorded it."""
    disk = Interrupted()
    log = begun(place, disk=disk)
    log.write([note("nearly full", 12_900)])
    log.let_go()
    file = segment_file(place, 1)
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    torn = pack(6, 5, bytes(32), b'{"text":"' + b"x" * 300)[:120]
    file.write_bytes(whole[:end] + torn + whole[end + len(torn) :])
    disk.at = "rename"
    with pytest.raises(KeyboardInterrupt):
        begun(place, disk=disk)
    assert len(list(segments(place))) == 2
    begun(place).close()
    found = everything(place)
    assert kinds(found).count("tail") == 1
    begun(place).close()
    assert kinds(everything(place)).count("tail") == 1
