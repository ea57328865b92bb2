"""Records of several gaming days, and the verdict of both verifiers after retirements."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from controller.audit import verify_record
from controller.audit.export import retire_segments
from controller.audit.export.retire import RetireResult
from controller.audit.read.reader import record_of, segments
from controller.audit.verify import VerifyReport, verify
from controller.audit.witness import store_notes
from tests.support.audit.record.table import NOON, TABLE_KEY, FakeClock, begun
from tests.support.audit.tools.outside import WITNESS, play
from tests.support.audit.verifying import read_independently
from tests.support.audit.witnessing import seen_by

DAYS: Final = ("2027-01-15", "2027-01-16", "2027-01-17", "2027-01-18")
DAY_US: Final = 86_400_000_000
TWO: Final = ("Ann", "Bo")
NOW: Final = NOON // 10**6 + 30 * 86_400


class Aged(NamedTuple):
    """A record, and its cosigned checkpoint at the end of each day."""

    record: Path
    archive: Path
    notes: list[bytes]


def aged(folder: Path, *, brought: bool = True) -> Aged:
    """A boot and four rounds for each day."""
    record, archive = folder / "mega-1", folder / "archive"
    notes = []
    for at in range(len(DAYS)):
        with closing(begun(record, clock=FakeClock(NOON + at * DAY_US))) as log:
            play(log, 1 + 4 * at, 4 + 4 * at, 830)
        notes.append(seen_by(record, archive, NOON // 10**6 + at).note.encode())
        if brought:
            store_notes(record, [(DAYS[at], notes[-1])], WITNESS.cosigner)
    return Aged(record, archive, notes)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Aged:
    return aged(tmp_path_factory.mktemp("aged"))


@pytest.fixture
def old(made: Aged, tmp_path: Path) -> Aged:
    """A copy to change."""
    record = shutil.copytree(made.record, tmp_path / "mega-1")
    return Aged(record, shutil.copytree(made.archive, tmp_path / "archive"), made.notes)


def ends_of(record: Path) -> dict[str, int]:
    """By day, the last segment without later records."""
    found: dict[str, int] = {}
    for segment in segments(record):
        days = {record_of(segment.file, frame).day for frame in segment.frames}
        found |= {day: segment.number for day in DAYS if max(days) <= day}
    return found


def retired(record: Path, before: str, out: Path, **more: Any) -> RetireResult:
    return retire_segments(record, before, out, TWO, TABLE_KEY, **{"now": lambda: NOW, **more})


def report_of(record: Path, **more: Any) -> VerifyReport:
    return verify(record, replay=False, **more)


def by_others(record: Path, *more: str) -> dict[str, Any]:
    """The verifier that is exported with a case."""
    command = [sys.executable, "-I", verify_record.__file__, str(record), "--json", *more]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.stderr == ""
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["exit"] == ran.returncode
    return found


def right(record: Path) -> tuple[str, ...]:
    """Both verifiers accept it; returns the retirements as text."""
    report, other = report_of(record), read_independently(record)
    assert (report.findings, report.unchecked) == ((), ())
    assert (other["wrong"], other["not_checked"], other["exit"]) == (None, {}, 0)
    assert tuple(other["retired"]) == report.retired
    return report.retired


def wrong(record: Path) -> str:
    """Both verifiers reject it; returns the product's findings."""
    report, other = report_of(record), read_independently(record)
    assert (report.code, other["exit"]) == (1, 1), (report.unchecked, other)
    return report.findings[0].what
