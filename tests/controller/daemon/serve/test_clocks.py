"""A machine whose clock is before the record: named, and two people may say that it is right."""

from __future__ import annotations

import errno
import shutil
import time
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from controller.audit.errors import RecordProblem
from controller.audit.format.records import Moment
from controller.audit.read.reader import records
from controller.config import load_table
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.table.loop import TableEnvironment, TableParts, parts_of
from controller.table.restart import open_record
from controller.table.restart.restore import ClockBehind
from tests.support.daemon.rig import furnished, right, run_once, whats
from tests.support.hil.conform.failing_disk import FailingDisk

NOON = 1_800_000_000
HOUR = 3600
TWO = ("Ann", "Bo")


def at(seconds: float, believed: tuple[str, str] | None = None) -> TableEnvironment:
    """The machine's clock says so at its beginning."""
    began = time.monotonic()

    def clock() -> Moment:
        gone = time.monotonic() - began
        mono = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return Moment(round((seconds + gone) * 1e6), mono, "synced")

    return TableEnvironment(utc=clock, believed=believed)


def test_a_clock_that_is_an_hour_behind_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON))
    before = list(records(tmp_path / "record"))
    with pytest.raises(ClockBehind) as caught:
        run_once(file, at(NOON - HOUR))
    assert isinstance(caught.value, UsageProblem)
    words = str(caught.value)
    assert "the machine's clock: says 2027-01-15 07:00:0" in words
    assert "the record goes to 2027-01-15 08:00:0" in words
    assert words.endswith("a clock that is set right; if it is right now: --believe-clock, once")
    assert list(records(tmp_path / "record")) == before
    run_once(file, at(NOON + 5))
    right(tmp_path)


def test_a_clock_that_is_a_little_behind_is_told_by_the_record(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON))
    run_once(file, at(NOON - 50))
    assert len(whats(tmp_path, "clock")) == 1
    assert whats(tmp_path, "person") == []
    right(tmp_path)


def test_two_people_who_say_that_it_is_right_stand_in_the_record(tmp_path: Path) -> None:
    """The clock was a year ahead before: without them the table could not be opened for a year."""
    file = furnished(tmp_path)
    run_once(file, at(NOON + 365 * 24 * HOUR))
    with pytest.raises(ClockBehind):
        run_once(file, at(NOON))
    run_once(file, at(NOON, TWO))
    (set_back,) = whats(tmp_path, "clock")
    assert set_back["two"] == ["Ann", "Bo"]
    run_once(file, at(NOON + 10))  # from now on nobody is asked
    right(tmp_path)


def test_where_there_is_nothing_to_believe_nothing_is_recorded(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file, at(NOON, TWO))
    run_once(file, at(NOON + 10, TWO))
    assert whats(tmp_path, "clock") == []
    run_once(file, at(NOON - 50 + 10, TWO))  # so little is taken without anybody's word
    assert [list(one) for one in whats(tmp_path, "clock")] == [["utc_was", "mono"]]


def test_wherever_it_ends_the_names_stand_or_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was set back is never taken without them: not by the start that they believed
    it at, and not by the next one."""
    file = furnished(tmp_path)
    run_once(file, at(NOON + HOUR))
    parts = parts_of(load_table(file))
    procedure = Procedure(parts.game)
    came, begun = set[str](), False
    disk = FailingDisk(monkeypatch, tmp_path / "tried", errno.EIO)
    for step in range(100):
        tried = replace(parts, record=tmp_path / "tried" / str(step))
        shutil.copytree(parts.record, tried.record)
        disk.asked, disk.at = 0, step
        begun = _begins(tried, procedure, at(NOON, TWO))
        disk.at = None
        try:
            log, _ = open_record(tried, procedure, at(NOON + 10).utc)
        except ClockBehind:
            came.add("asked again")
        else:
            log.close()
            told = [
                json.decode(one.data) for _, one in records(tried.record) if one.kind == "clock"
            ]
            assert [one["two"] for one in told] == [["Ann", "Bo"]], step
            came.add("stands")
        if begun:
            break
    assert (begun, came) == (True, {"asked again", "stands"})


def _begins(parts: TableParts, procedure: Procedure, world: TableEnvironment) -> bool:
    """Whether it does, with this disk. Whatever it comes to, it is let go of as by a kill."""
    try:
        log, _ = open_record(parts, procedure, world.utc, world.believed)
    except RecordProblem:
        return False
    log.release()
    return True
