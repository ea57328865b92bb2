"""`holecard audit retire`: what it takes and what it refuses, and with which exit code."""

import errno
import fcntl
import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from controller.audit.commands import approvals
from controller.audit.errors import CannotWrite
from controller.audit.export import CaseCheck, check_case
from controller.audit.export.retire import BadCase, NothingToRetire, NotSigned, UnfinishedRetirement
from controller.audit.format.segments import numbers
from controller.audit.keys import private_text, table_text
from controller.audit.read.lookup import first_head, gone_before
from controller.audit.read.reader import records
from controller.audit.read.retirements import retirement_files
from controller.audit.replay import RecordReplay, at_rest
from controller.errors import UsageProblem
from tests.support.audit.record.power import PowerDisk, PowerLost
from tests.support.audit.record.retiring import (
    DAYS,
    aged,
    ends_of,
    report_of,
    retired,
    right,
)
from tests.support.audit.record.table import (
    NOON,
    TABLE_KEY,
    FakeClock,
    FaultyDisk,
    begun,
    failing,
    note,
)
from tests.support.audit.tools.audit_command import Ran, Runs, table_keys
from tests.support.audit.tools.outside import bytes_of, end_after, files_in, flip, grow, play
from tests.support.audit.verifying import read_independently

BY = ("--by", "Ann", "--and", "Bo")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aged(tmp_path_factory.mktemp("aged")).record


@pytest.fixture
def runs(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Runs:
    """A month later, on the machine that has the table's key."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Later":
            return cls(2027, 2, 14, 9, tzinfo=UTC)

    monkeypatch.setattr(approvals, "datetime", Later)
    runs = Runs(tmp_path, capsys)
    shutil.copytree(made, runs.record)
    runs.keys.mkdir(0o700)
    (runs.keys / "table.key").write_bytes(private_text(TABLE_KEY))
    (runs.keys / "table.pub").write_bytes(table_text(TABLE_KEY.public_key().public_bytes_raw()))
    for name in ("table.key", "table.pub"):
        (runs.keys / name).chmod(0o600)
    return runs


def tried(runs: Runs, *options: str, day: str = DAYS[2], out: str = "old.zip") -> Ran:
    place = str(runs.folder / out)
    return runs("retire", "--before", day, "--out", place, "--keys", str(runs.keys), *options)


def refused(runs: Runs, code: int, words: str, *options: str, **more: str) -> None:
    """Nothing is changed: not in the record, nor beside it."""
    before = files_in(runs.folder)
    ran = tried(runs, *options, **more)
    assert (ran.code, words in ran.line) == (code, True), ran
    assert files_in(runs.folder) == before


def test_it_says_what_was_retired(runs: Runs) -> None:
    last = ends_of(runs.record)[DAYS[1]]
    ran = tried(runs, *BY)
    assert ran.code == 0, ran
    assert f"segments 1 to {last}, gaming days {DAYS[0]} to {DAYS[1]}" in ran.out
    (words,) = right(runs.record)
    assert words in ran.out
    assert runs("check-case", record=runs.folder / "old.zip").code == 0
    verified = runs("verify", "--no-replay", "--table-key", str(runs.keys / "table.pub"))
    assert f"retired: {words}" in verified.out
    assert verified.out.endswith("\nRIGHT\n")


def test_a_case_that_is_brought_back_is_known(runs: Runs) -> None:
    assert tried(runs, *BY).code == 0
    other = runs.folder / "other.zip"
    assert runs("export", "--out", str(other)).code == 0
    asked = ("check-case", "--retired-from", str(runs.record))
    assert runs(*asked, record=runs.folder / "old.zip").code == 0
    ran = runs(*asked, record=other)
    assert (ran.code, "no case that was retired from this record" in ran.out) == (1, True)
    assert runs(*asked[:2], str(runs.keys), record=other).code == 2


def test_it_is_told_in_json(runs: Runs) -> None:
    found = tried(runs, *BY, "--json").json
    assert (found["segments"][0], found["days"]) == (1, [DAYS[0], DAYS[1]])
    assert (found["two"], found["ended"]) == (["Ann", "Bo"], False)
    said = json.loads((runs.record / found["note"]).read_bytes().partition(b"\n")[0])
    for name in ("case", "seal", "root", "records", "rounds"):
        assert found[name] == said[name]


def test_the_keys_beside_a_record_are_found(runs: Runs) -> None:
    shutil.move(runs.keys, runs.record / "keys")
    assert runs("retire", "--before", DAYS[2], "--out", str(runs.folder / "old.zip"), *BY).code == 0


@pytest.mark.parametrize(
    "day", ["yesterday", "2027-02-30", "2027-2-1", "20270201", "", "2027-02-01T00"]
)
def test_a_day_that_is_none_is_refused(day: str, runs: Runs) -> None:
    refused(runs, 2, "is no day; allowed: YYYY-MM-DD", *BY, day=day)


def test_a_day_in_the_future_is_refused(runs: Runs) -> None:
    refused(runs, 2, "2027-02-15 is in the future", *BY, day="2027-02-15")
    assert tried(runs, *BY, day="2027-02-14").code == 0


def test_where_nothing_is_so_old_nothing_is_done(runs: Runs) -> None:
    refused(
        runs, 1, f"no whole closed segment has only gaming days before {DAYS[0]}", *BY, day=DAYS[0]
    )


def test_a_file_that_is_there_is_never_replaced(runs: Runs) -> None:
    (runs.folder / "old.zip").write_text("mine")
    refused(runs, 2, "is there already", *BY)
    refused(runs, 2, "is no zip", *BY, out="old")
    refused(runs, 2, "there is no directory", *BY, out="none/old.zip")
    refused(runs, 2, "lies in the record's own directory", *BY, out="record/old.zip")


def test_two_different_people_say_so(runs: Runs) -> None:
    refused(runs, 2, "'ann' is the same person", "--by", "Ann", "--and", "ann")
    refused(runs, 2, "--and: is missing: two people must approve", "--by", "Ann")
    refused(runs, 2, "--by: is missing: two people must approve")


def test_a_record_that_is_served_stays_as_it_is(runs: Runs) -> None:
    with (runs.record / "lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(runs, 2, "another process writes it", *BY)
    assert tried(runs, *BY).code == 0


def test_another_tables_key_retires_nothing(runs: Runs) -> None:
    shutil.rmtree(runs.keys)
    refused(runs, 2, "there is no such directory", *BY)
    table_keys(runs.keys)
    refused(runs, 2, "another table's key than the one that is given", *BY)


def test_what_is_no_record_is_refused(runs: Runs) -> None:
    out = str(runs.folder / "old.zip")
    words = ("retire", "--before", DAYS[2], "--out", out, "--keys", str(runs.keys), *BY)
    for place in (runs.folder / "nowhere", runs.keys):
        before = files_in(runs.folder)
        assert (runs(*words, record=place).code, files_in(runs.folder)) == (2, before)


def test_a_record_that_is_wrong_stays_as_it_is(runs: Runs) -> None:
    file = runs.record / "segments" / "00000002.seg"
    flip(file, 5000)
    refused(runs, 1, "", *BY)
    file.unlink()
    refused(runs, 1, "is missing", *BY)


# --- what stays -------------------------------------------------------------------------------


def test_the_open_segment_stays_and_what_a_start_reads(tmp_path: Path, place: Path) -> None:
    """A boot that has come into a new segment has its beginning in the one before."""
    log = begun(tmp_path / "record", clock=FakeClock())
    play(log, 1, 8, 700)
    log.release()
    there = numbers(place)
    said = retired(place, "2999-01-01", tmp_path / "old.zip").retirement
    assert (said.segments, numbers(place)) == ((1, there[-1] - 2), there[-2:])
    right(place)


def test_an_open_round_stays_whole(dealt: Path, tmp_path: Path) -> None:
    """Wherever the table stops, in a round or between two."""
    replay = RecordReplay(dealt)
    began: dict[int, int] = {}
    """By seq, the first record of the round that is open there; 0 where none is."""
    first = 0
    for place, found in records(dealt):
        replay.take(place, found)
        first = 0 if replay.state is None or at_rest(replay.state) else first or found.seq
        began[found.seq] = first
    kept = took = 0
    for seq in range(200, len(began), 97):
        record = shutil.copytree(dealt, tmp_path / f"{seq}")
        end_after(record, seq)
        try:
            took += retired(record, "2999-01-01", tmp_path / f"{seq}.zip").retirement.segments[1]
        except (NothingToRetire, NotSigned):
            continue
        assert first_head(record).record.seq <= (began[seq] or seq)
        kept += began[seq] > 0
    assert kept > 3
    assert took > 30


def test_what_no_checkpoint_is_over_stays(tmp_path: Path, place: Path) -> None:
    log = begun(place, clock=FakeClock(NOON))
    while numbers(place)[-1] < 4:
        log.write([note("not signed", 700)])
    log.release()
    with pytest.raises(NotSigned, match="has no checkpoint over all of it yet"):
        retired(place, "2999-01-01", tmp_path / "old.zip")
    assert numbers(place)[0] == 1
    assert not (tmp_path / "old.zip").exists()


# --- a retirement that is interrupted: by a kill, a power loss, a failing disk ----------------


LOSSES = 3
"""Ways in which each loss of power is tried."""


@pytest.fixture
def record(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "disk" / "mega-1")


class FailsAt(FaultyDisk):
    """Fails at one call, once."""

    def __init__(self, at: int, number: int) -> None:
        super().__init__()
        self._at, self._number = at, number

    def before(self, call: str, file: Path | None = None) -> None:
        super().before(call, file)
        if len(self.calls) == self._at + 1:
            raise OSError(self._number, os.strerror(self._number))

    def remove(self, file: Path) -> None:
        self.before("remove", file)
        super().remove(file)


def whole_and_goes_on(record: Path, case: Path, before: list[bytes], last: int) -> None:
    """What is left is right to both verifiers, has all that was not to go, opens for writing, and
    can be retired."""
    report, other = report_of(record), read_independently(record)
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
    if begun or not retirement_files(record):
        again = retired(record, DAYS[2], case if begun else case.with_name("again.zip"))
        assert (again.ended, again.retirement.segments) == (begun, (1, last))
    assert (numbers(record)[0], len(right(record))) == (last + 1, 1)


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
    before = files_in(record)
    out = tmp_path / "out" / "old.zip"
    out.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(f"controller.audit.export.case_folder.{call}", failing(errno.ENOSPC))
        patched.setattr("controller.audit.export.case.log_access", lambda *_, **__: None)
        with pytest.raises(OSError, match="No space left"):
            retired(record, DAYS[2], out)
    assert (files_in(record), list(out.parent.iterdir())) == (before, [])


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
        flip(record / "segments" / "00000001.seg", 500)
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
    said = retired(record, DAYS[2], case).retirement
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
    assert (again.ended, again.retirement.segments, len(right(record))) == (False, (1, last), 1)
