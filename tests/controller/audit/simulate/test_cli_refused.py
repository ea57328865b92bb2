"""Errors of `holecard script run --record`: one line and an exit code each."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from controller import cli
from controller.audit.errors import (
    AppendTimeout,
    CannotWrite,
    DiskFull,
    IndexAhead,
    IndexBusy,
    IndexDamaged,
    IndexDiskFull,
    IndexFileProblem,
    IndexOfOther,
    InUse,
    LogFailed,
    NoRecord,
    OtherTable,
    RecordDamaged,
    RecordProblem,
    RecordsMissing,
    UnexplainedTail,
    WriterBusy,
)
from controller.audit.files import RealDisk
from controller.audit.format.segments import segment_file
from controller.audit.keys import ROLES, create_key
from controller.audit.read.reader import records
from controller.audit.replay import OtherProcedure, ReplayMismatch
from controller.audit.simulate import rounds
from controller.audit.verify import verify
from tests.support.audit.record.running import Runs, kinds
from tests.support.audit.verifying import read
from tests.support.sim.a_round import changed


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys)


# --- what it cannot do ------------------------------------------------------------------------


def test_keys_without_a_record_are_rejected(run: Runs, tmp_path: Path) -> None:
    ran = run("--keys", str(tmp_path))
    assert (ran.code, ran.err) == (
        2,
        "holecard: --keys: nothing is recorded; allowed: --record DIR beside it\n",
    )


@pytest.mark.parametrize("option", ["--record", "--keys"])
@pytest.mark.parametrize("name", ["", "a\0b"])
def test_an_invalid_name_is_rejected(run: Runs, option: str, name: str) -> None:
    ran = run("--record", str(run.place), option, name)
    assert (ran.code, ran.err) == (
        2,
        f"holecard: {option}: is no directory's name; allowed: a directory\n",
    )


@pytest.mark.parametrize("broken", ["table.pub", "hole.key", "surveillance.pub"])
def test_damaged_keys_are_reported_before_a_record_is_begun(
    run: Runs, tmp_path: Path, broken: str
) -> None:
    keys = tmp_path / "keys"
    for role in ROLES[:3]:
        create_key(keys, role)
    (keys / broken).write_text("scribble")
    ran = run("--record", str(run.place), "--keys", str(keys))
    assert ran.code == 2
    assert ran.line.startswith(f"holecard: {keys / broken}: ")
    assert not (run.place / "segments").exists()


def test_missing_keys_are_reported_with_the_command(run: Runs, tmp_path: Path) -> None:
    ran = run("--record", str(run.place), "--keys", str(tmp_path / "none"))
    assert ran.code == 2
    assert "`holecard keys new` makes one" in ran.line


@pytest.mark.parametrize(
    ("code", "call", "words"),
    [
        (errno.ENOSPC, "create", "there is no room for the next segment"),
        (errno.EDQUOT, "create", "there is no room for the next segment"),
        (errno.EIO, "sync", "nothing is recorded any more since"),
        (errno.EROFS, "write", "nothing is recorded any more since"),
    ],
)
def test_a_disk_error_is_exit_74(
    run: Runs, monkeypatch: pytest.MonkeyPatch, code: int, call: str, words: str
) -> None:
    def fails(*_: Any) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(RealDisk, call, fails)
        ran = run()
    assert ran.code == 74
    assert ran.line.startswith("holecard: DIR: ")
    assert words in ran.line
    assert os.strerror(code) in ran.line
    assert run().code == 0


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_next_run_continues_after_a_full_disk(
    run: Runs, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.audit.simulate.rounds.SCRIPTS_SIZE", 64 * 1024)
    many = tuple(changed(id=f"R-{number}") for number in range(30))
    made: list[Path] = []
    real = RealDisk.create

    def fills_up(disk: RealDisk, file: Path) -> int:
        if len(made) == room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        made.append(file)
        return real(disk, file)

    with monkeypatch.context() as patched:
        patched.setattr(RealDisk, "create", fills_up)
        ran = run(rounds=many)
    assert ran.code == 74
    told, said = ran.err.splitlines()[-2:]
    assert said == (
        "holecard: DIR: there is no room for the next segment: No space left on device; free 64 "
        "KiB on its disk; nothing is lost"
    )
    there = [record for _, record in records(run.place)]
    assert told == f"holecard: DIR: recorded, the last record is {there[-1].seq}"
    shown = [line for line in ran.out.splitlines() if line.startswith("ok ")]
    assert 0 < len(shown) < 30
    assert sum(b'"type":"RoundOver"' in bytes(one.data) for one in there) in (
        len(shown),
        len(shown) + 1,  # finished, but not printed yet
    )
    assert len(kinds(run.place)) == there[-1].seq
    right(run.place)
    assert run(rounds=many).code == 0
    now = [record for _, record in records(run.place)]
    assert now[: len(there)] == there
    assert now[-1].kind == "checkpoint"
    right(run.place)


def right(place: Path) -> None:
    """According to both verifiers."""
    assert verify(place).findings == ()
    assert read(place)["exit"] == 0


def test_a_damaged_record_is_exit_1(run: Runs) -> None:
    run()
    file = segment_file(run.place, 1)
    data = bytearray(file.read_bytes())
    data[200] ^= 1
    file.write_bytes(bytes(data))
    ran = run()
    assert ran.code == 1
    assert ran.line.startswith("holecard: DIR/segments/00000001.seg: ")
    assert file.read_bytes() == bytes(data)


def test_a_name_with_a_newline_is_printed_on_one_line(run: Runs, tmp_path: Path) -> None:
    odd = tmp_path / "two\nlines"
    odd.write_text("")
    ran = run("--record", str(odd))
    assert ran.code == 2
    assert ran.err.count("\n") == 1


PROBLEMS: dict[RecordProblem, int] = {
    NoRecord("here", "what", "todo"): 2,
    OtherTable("here", "what", "todo"): 2,
    InUse("here", "what", "todo"): 2,
    CannotWrite("here", "what", "todo"): 2,
    RecordDamaged("here", "what", "todo"): 1,
    RecordsMissing("here", "what", "todo"): 1,
    UnexplainedTail("here", "what", "todo"): 1,
    ReplayMismatch("here", "what", "todo"): 1,
    OtherProcedure("here", "what", "todo"): 1,
    LogFailed("here", OSError("what")): 74,
    DiskFull("here", "what", "todo"): 74,
    WriterBusy("here", "what", "todo"): 74,
    AppendTimeout("here", TimeoutError("what")): 74,
    IndexAhead("here", "what", "todo"): 1,
    IndexDamaged("here", "what", "todo"): 1,
    IndexOfOther("here", "what", "todo"): 2,
    IndexFileProblem("here", "what", "todo"): 2,
    IndexBusy("here", "what", "todo"): 2,
    IndexDiskFull("here", "what", "todo"): 74,
}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_every_record_error_is_one_line_and_an_exit_code(
    problem: RecordProblem, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(args: argparse.Namespace) -> int:
        raise problem

    monkeypatch.setattr(rounds, "play", fails)
    assert cli.main(["script", "run", "rounds.json"]) == PROBLEMS[problem]
    assert capsys.readouterr().err == f"holecard: {problem}\n"
