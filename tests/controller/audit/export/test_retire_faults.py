"""A retirement that is cut short: by a kill, a loss of power or a failing disk, at every step."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from controller.audit.errors import CannotWrite
from controller.audit.export import CaseCheck, check_case
from controller.audit.export.retire import BadCase, UnfinishedRetirement
from controller.audit.files import RealDisk
from controller.audit.format.segments import numbers
from controller.audit.read.lookup import gone_before
from controller.audit.read.retirements import retirement_files
from controller.errors import UsageProblem
from tests.support.audit.record.power import PowerDisk, PowerLost
from tests.support.audit.record.retiring import (
    DAYS,
    aged,
    ends_of,
    quickly,
    report_of,
    retired,
    right,
)
from tests.support.audit.tools.outside import bytes_of, files_in, grow

LOSSES = 3
"""Ways in which each loss of power is tried."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aged(tmp_path_factory.mktemp("aged")).record


@pytest.fixture
def record(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "disk" / "mega-1")


class FailsAt(RealDisk):
    """Fails at one call, once."""

    def __init__(self, at: int, number: int = errno.EIO) -> None:
        self.left, self._number = at, number

    def _count(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise OSError(self._number, os.strerror(self._number))

    def create(self, file: Path) -> int:
        self._count()
        return super().create(file)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self._count()
        return super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, file: Path) -> None:
        self._count()
        super().remove(file)

    def sync_directory(self, directory: Path) -> None:
        self._count()
        super().sync_directory(directory)


def whole_and_goes_on(record: Path, case: Path, before: list[bytes], last: int) -> None:
    """What is left is right to both verifiers, has all that was not to go, opens for writing, and
    can be retired."""
    report, other = report_of(record), quickly(record)
    assert (report.code, report.findings, report.unchecked) == (0, (), ())
    assert (other["exit"], other["wrong"], other["not_checked"]) == (0, None, {})
    left = bytes_of(record)
    assert left == before[len(before) - len(left) :]
    if numbers(record)[0] > 1:  # nothing is gone that no note tells of and no case has
        assert retirement_files(record)
    if retirement_files(record):
        assert check_case(case).right
    grow(record)
    begun = bool(retirement_files(record)) and numbers(record)[0] <= last
    free = begun or not retirement_files(record)
    if free:
        again = retired(record, DAYS[2], case if begun else case.with_name("again.zip"))
        assert again.ended == begun
        assert again.said.segments == (1, last)
    assert numbers(record)[0] == last + 1
    assert len(right(record)) == 1


def test_a_kill_or_a_loss_of_power_at_any_step_leaves_a_record(record: Path) -> None:
    """Of a loss of power what was not synced is there, or not."""
    root, before, last = record.parent, bytes_of(record), ends_of(record)[DAYS[1]]
    folder, step, ended = root.parent, 0, False
    while not ended:
        here = folder / f"{step}"
        copy = shutil.copytree(root, here / "disk")
        disk = PowerDisk(copy, step)
        disk.know()
        case = here / "old.zip"
        try:
            retired(copy / "mega-1", DAYS[2], case, disk=disk)
            ended = True
        except PowerLost:
            pass
        for way in range(LOSSES):
            place = here / f"power-{way}"
            disk.left(place, Random(f"{step} {way}"))
            shutil.copy(case, place / "old.zip")
            whole_and_goes_on(place / "mega-1", place / "old.zip", before, last)
        whole_and_goes_on(copy / "mega-1", case, before, last)
        shutil.rmtree(here)
        step += 1
    assert step > 2 * last


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_disk_that_fails_at_any_step_is_told_and_harms_nothing(number: int, record: Path) -> None:
    root, before, last = record.parent, bytes_of(record), ends_of(record)[DAYS[1]]
    step, failed = 0, True
    while failed:
        here = root.parent / f"{step}"
        copy = shutil.copytree(root, here) / "mega-1"
        case = here / "old.zip"
        told = ""
        try:
            retired(copy, DAYS[2], case, disk=FailsAt(step, number))
        except CannotWrite as problem:
            told = problem.what
        failed = told != ""
        assert told == "" or os.strerror(number).lower() in told
        whole_and_goes_on(copy, case, before, last)
        shutil.rmtree(here)
        step += 3 if number != errno.EIO else 1


# --- the case ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ["os.rename", "os.fsync", "shutil.copyfileobj", "Path.write_bytes"]
)
def test_a_disk_that_is_full_while_the_case_is_written_changes_nothing(
    call: str, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = files_in(record)
    out = tmp_path / "out" / "old.zip"
    out.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(f"controller.audit.export.case_folder.{call}", full)
        patched.setattr("controller.audit.export.case.log_access", lambda *_, **__: None)
        with pytest.raises(OSError, match="No space left"):
            retired(record, DAYS[2], out)
    assert files_in(record) == before
    assert list(out.parent.iterdir()) == []


def test_a_case_that_does_not_check_removes_nothing(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(case: Path) -> CaseCheck:
        found = check_case(case)
        return CaseCheck(found.manifest, found.seal, ("record/x: was changed",))

    before = files_in(record)
    monkeypatch.setattr("controller.audit.export.retire.check_case", wrong)
    with pytest.raises(BadCase, match="does not check: record/x: was changed; nothing was removed"):
        retired(record, DAYS[2], tmp_path / "old.zip")
    assert files_in(record) == before
    assert not (tmp_path / "old.zip").exists()


def test_a_segment_that_is_another_one_than_in_the_case_is_not_removed(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that gives back other bytes the second time."""

    def later(case: Path) -> CaseCheck:
        file = record / "segments" / "00000001.seg"
        data = bytearray(file.read_bytes())
        data[500] ^= 1
        file.write_bytes(data)
        return check_case(case)

    monkeypatch.setattr("controller.audit.export.retire.check_case", later)
    with pytest.raises(BadCase, match="is not the segment that lies here"):
        retired(record, DAYS[2], tmp_path / "old.zip")
    assert numbers(record)[0] == 1


# --- one that was cut short -------------------------------------------------------------------


def cut_short(record: Path, case: Path, removed: int) -> str:
    """So many segments were removed; what its note says of its case."""
    segments = {
        one: (record / "segments" / one).read_bytes() for one in os.listdir(record / "segments")
    }
    said = retired(record, DAYS[2], case).said
    for number in range(said.segments[0] + removed, said.segments[1] + 1):
        name = f"{number:08d}.seg"
        (record / "segments" / name).write_bytes(segments[name])
    return said.case


def test_it_is_ended_with_its_own_case_only(record: Path, tmp_path: Path) -> None:
    case, other = tmp_path / "old.zip", tmp_path / "other.zip"
    digest = cut_short(record, case, 1)
    before = files_in(record)
    (remark,) = [one for one in report_of(record).remarks if "left of what" in one]
    assert "segments 2 to" in remark
    assert gone_before(record) == ""
    with pytest.raises(UnfinishedRetirement, match=f"sha256 of its case {digest}"):
        retired(record, DAYS[2], other)
    other.write_bytes(b"something else")
    with pytest.raises(UsageProblem, match=f"is not the case of .*cut short: sha256 {digest}"):
        retired(record, DAYS[2], other)
    assert files_in(record) == before
    assert retired(record, DAYS[2], case).ended
    assert len(right(record)) == 1


def test_one_that_has_removed_nothing_can_be_done_anew(record: Path, tmp_path: Path) -> None:
    cut_short(record, tmp_path / "old.zip", 0)
    (tmp_path / "old.zip").unlink()
    assert len(right(record)) == 1
    last = ends_of(record)[DAYS[0]]
    again = retired(record, DAYS[1], tmp_path / "new.zip")
    assert (again.ended, again.said.segments) == (False, (1, last))
    assert len(right(record)) == 1
