"""What is no file in the place of one: nothing waits for it, and nothing reads it without end."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.audit.format.segments import numbers, segment_file
from tests.support.audit.record.table import begun, note
from tests.support.audit.tools.audit_command import Runs, rounds
from tests.support.paths import ROOT

ROOM = 2 * 1024**3
"""Bytes of memory that a command may have."""


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def sparse(file: Path) -> None:
    os.truncate(file, 6 * 1024**3)


def zeros(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


STRANGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (pipe, "is no file"),
    "grown": (sparse, "has 6442450944 bytes, its header says"),
    "no end": (zeros, "is no file"),
}


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(tmp_path, capsys)
    runs.make(*rounds(1))
    return runs


def ran(*words: str | Path, program: tuple[str, ...] = ("-m", "controller.cli")) -> tuple[int, str]:
    """The exit code, and all that was said."""
    found = subprocess.run(
        [sys.executable, *program, *map(str, words)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)),
        check=False,
    )
    assert "Traceback" not in found.stderr
    return found.returncode, found.stdout + found.stderr


@pytest.mark.parametrize("name", STRANGE)
def test_a_segment_that_is_none_is_named(name: str, runs: Runs) -> None:
    make, words = STRANGE[name]
    make(segment_file(runs.record, 1))
    for command in ("verify", "tail", "show", "rebuild-index"):
        code, said = ran("audit", command, runs.record)
        assert (code, words in said) == (1, True), (command, said)
    script = runs.folder / "rounds.json"
    code, said = ran("script", "run", script, "--record", runs.record, "--keys", runs.keys)
    assert (code, words in said) == (1, True), said
    verifier = str(ROOT / "controller/audit/verify_record.py")
    assert ran(runs.record, program=(verifier,))[0] == 1


@pytest.mark.parametrize("name", STRANGE)
def test_a_case_leaves_out_what_can_be_no_segment(name: str, tmp_path: Path) -> None:
    make, words = STRANGE[name]
    place, case = tmp_path / "record", tmp_path / "case"
    log = begun(place)
    for _ in range(8):
        log.write([note("x", 5000)])
    log.close()
    assert len(numbers(place)) > 2
    make(segment_file(place, 2))
    _, said = ran("audit", "export", place, "--out", case)
    assert f"segment 2: {words}" in said
    assert "00000002.seg: is no segment, and not in this case" in said
    names = [file.name for file in (case / "record" / "segments").iterdir()]
    assert "00000002.seg" not in names
    assert "00000003.seg" in names


def test_notes_and_tails_that_are_no_files_are_named(runs: Runs) -> None:
    (runs.record / "cosigned").mkdir()
    os.mkfifo(runs.record / "cosigned" / "5.note")
    code, said = ran("audit", "verify", runs.record)
    assert code == 1
    assert "cosigned/5.note: cannot be read: it is no file" in said
    code, said = ran(runs.record, program=(str(ROOT / "controller/audit/verify_record.py"),))
    assert code == 1
    assert "cosigned/5.note is gone, or no file" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check-case", "{pipe}"), "is neither a file nor a directory"),
        (("check-proof", "{pipe}", "--table-key", "{keys}/table.pub"), "it is no file"),
        (("prove", "{record}", "--since", "{pipe}"), "it is no file; allowed: a file"),
        (("verify", "{record}", "--table-key", "{pipe}"), "it is no file; allowed: a file"),
        (("witnessed", "{record}", "n", "--witness-key", "{pipe}"), "it is no file"),
    ],
)
def test_a_pipe_in_the_place_of_a_file_is_refused(
    words: tuple[str, ...], said: str, runs: Runs
) -> None:
    place = runs.folder / "pipe"
    os.mkfifo(place)
    places = {"pipe": place, "record": runs.record, "keys": runs.keys}
    found = ran("audit", *(one.format(**places) for one in words))
    assert found[0] == 2
    assert said in found[1]


def test_the_verifier_says_what_its_exit_codes_are() -> None:
    code, said = ran("--help", program=(str(ROOT / "controller/audit/verify_record.py"),))
    assert code == 0
    words = "Exit codes: 0 right, 1 something is wrong, 2 usage, 3 right as far as it could be"
    assert words in " ".join(said.split())
