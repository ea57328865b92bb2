"""`holecard audit verify`: what it says, and with which exit code."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.audit.format.segments import numbers, segment_file
from controller.audit.keys import witness_text
from controller.audit.read.reader import segments
from controller.audit.release import PROCEDURE, source_hash
from controller.audit.replay import identity
from controller.audit.verify import decisions
from tests.support.audit.record.retiring import by_others
from tests.support.audit.record.table import note, written
from tests.support.audit.tools.audit_command import Runs, refused, rounds, says
from tests.support.audit.tools.outside import WITNESS, flip, played
from tests.support.audit.verifying import cosigned_end
from tests.support.paths import ROOT
from tests.support.terminal import terminal

OPENED = "2 hole cards opened as they were committed to"


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys, *rounds(2))


def test_a_record_in_good_order_is_right(runs: Runs) -> None:
    ran = runs("verify", "--table-key", str(runs.keys / "table.pub"))
    says(ran, 0, "decisions and refusals replayed by the rules", OPENED)
    assert (ran.err, ran.out.endswith("RIGHT\n"), "NOT PROVEN" in ran.out) == ("", True, False)


def test_it_is_told_in_json(runs: Runs) -> None:
    found = runs("verify", "--json").json
    assert (found["exit"], found["findings"], found["unchecked"]) == (0, [], [])
    assert (found["records"], found["signed"]) == (found["last"], found["last"] - 1)
    assert found["proven_key"] is False
    assert found["again"] == found["kinds"]["decision"]


def test_a_key_that_only_the_record_names_is_loudly_no_proof(runs: Runs) -> None:
    says(runs("verify"), 0, "THE TABLE'S KEY IS NOT PROVEN: it comes from the record itself")


def test_the_tables_key_is_given_in_any_of_its_forms(runs: Runs) -> None:
    key = str(runs("verify", "--json").json["table_key"])
    file = runs.folder / "vkey"
    file.write_text(key + "\n")
    for given in (key, str(file), str(runs.keys / "table.pub")):
        ran = runs("verify", "--table-key", given)
        assert (ran.code, "NOT PROVEN" in ran.out) == (0, False), ran


def test_another_tables_key_is_found(runs: Runs) -> None:
    ran = runs("verify", "--table-key", str(runs.another().keys / "table.pub"))
    says(ran, 1, "not the one that was given")
    assert ran.out.endswith("WRONG\n")


def test_what_is_wrong_is_told_with_its_place_and_since_when(runs: Runs) -> None:
    (only,) = segments(runs.record)
    frame = only.frames[20]
    flip(only.file, frame.offset + 100)
    ran = runs("verify")
    place = f"segment 00000001, offset {frame.offset}, seq {frame.seq}, round 1"
    words = f"wrong: {place}: its CRC is false; records after seq 20 cannot be read"
    says(ran, 1, words, "all was as it must be")
    assert ran.out.endswith("WRONG\n")
    (found,) = runs("verify", "--json").json["findings"]
    assert (found["segment"], found["offset"], found["seq"]) == (1, frame.offset, frame.seq)
    assert found["since"] > 0


def test_what_a_witness_saw_is_held_against_the_record(tmp_path: Path, runs: Runs) -> None:
    record = played(tmp_path / "played")
    note, key = tmp_path / "seen.note", tmp_path / "witness.pub"
    note.write_bytes(cosigned_end(record))
    key.write_bytes(witness_text(WITNESS.cosigner))
    given = ("--checkpoint", str(note), "--witness-key", str(key))
    words = "are those that archive.example/floor-2 saw on 2026-"
    says(runs("verify", *given, record=record), 0, words)
    says(runs("verify", *given), 1, "archive.example/floor-2 has seen holecard/mega-1/")


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (lambda note: note[:-20] + b"A" + note[-19:], "the signature of"),
        (lambda note: note.replace(b"archive", b"archivo"), "none of the known keys has signed"),
        (lambda note: b"{}", "a note without an empty line"),
    ],
)
def test_a_note_that_the_witness_did_not_sign_is_a_finding(
    tmp_path: Path, runs: Runs, forge: Callable[[bytes], bytes], words: str
) -> None:
    record = played(tmp_path / "played")
    note = tmp_path / "seen.note"
    note.write_bytes(forge(cosigned_end(record)))
    given = ("--checkpoint", str(note), "--witness-key", str(WITNESS.cosigner))
    ran = runs("verify", *given, record=record)
    assert ran.code == 1
    assert f"--checkpoint {note}: " in ran.out
    assert words in ran.out
    assert by_others(record, *given)["exit"] == 1


def test_decisions_of_other_code_are_told_by_the_version_that_they_need(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = runs("verify", "--json").json["again"]
    ours = source_hash(*PROCEDURE)
    for module in (identity, decisions):
        monkeypatch.setattr(module, "source_hash", lambda *packages: "ab" * 32)
    ran = runs("verify")
    says(
        ran,
        3,
        f"not checked: {again} decisions and refusals were made by {identity.software_name()}, "
        f"whose procedure's code is {ours}: they can be made again with that version",
    )
    assert ran.out.endswith("RIGHT AS FAR AS IT COULD BE CHECKED\n")
    assert runs("verify", "--json").json["exit"] == 3


def test_what_decisions_say_can_be_left_out(runs: Runs) -> None:
    says(runs("verify", "--no-replay"), 3, "were not replayed: --no-replay", OPENED)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--checkpoint", "x"], "--checkpoint and --witness-key go together"),
        (["--witness-key", "x"], "--checkpoint and --witness-key go together"),
        (["--table-key", "nowhere"], "--table-key: nowhere: no such file or directory"),
        (["--table-key", "a+b"], "--table-key: is no verifier key"),
        (["--table-key", ""], "--table-key: is empty"),
        (["--table-key", "{folder}/rounds.json"], "is not a comment with a fingerprint"),
        (
            ["--checkpoint", "nowhere", "--witness-key", str(WITNESS.cosigner)],
            "--checkpoint: nowhere: no such file or directory",
        ),
        (
            ["--checkpoint", "x", "--witness-key", str(WITNESS.verifier)],
            "--witness-key: is not a witness's key",
        ),
        (["--jobs", "0"], "'0'; allowed: 1 to 256"),
        (["--jobs", "many"], "'many'; allowed: 1 to 256"),
    ],
)
def test_mistakes_are_said(runs: Runs, options: list[str], words: str) -> None:
    refused(runs("verify", *(one.format(folder=runs.folder) for one in options)), words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda place: None, "there is no record here"),
        (lambda place: place.mkdir(), "there is no record here"),
        (lambda place: (place / "segments").mkdir(parents=True), "the record has no segment"),
        (lambda place: place.write_text("x"), "there is no record here"),
    ],
)
def test_a_place_without_a_record_is_told(runs: Runs, make: object, words: str) -> None:
    place = runs.folder / "elsewhere"
    make(place)  # type: ignore[operator]
    refused(runs("verify", record=place), words)


# --- on both cores, at a terminal -------------------------------------------------------------


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", "audit", "verify", *words]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A record of more segments than one process reads by itself."""
    return played(tmp_path / "long", rounds=60)


def test_several_processes_find_the_same(long: Path, runs: Runs) -> None:
    files = sorted((long / "segments").glob("0*.seg"))
    assert len(files) > 4
    for spoilt in (None, files[2], files[-1]):
        if spoilt is not None:
            flip(spoilt, 4000, 4)
        one, two = (runs("verify", "--json", "--jobs", str(n), record=long) for n in (1, 2))
        assert (one.code, one.out) == (two.code, two.out)
        assert one.code == (0 if spoilt is None else 1)


def test_progress_is_shown_at_a_terminal_only(long: Path) -> None:
    with terminal() as at:
        run = subprocess.run(
            command(str(long)),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=at.far,
            timeout=60,
            check=True,
        )
        shown = at.shown()
    assert "records" in shown
    assert run.stdout.endswith(b"RIGHT\n")
    off = subprocess.run(command(str(long)), cwd=ROOT, capture_output=True, timeout=60, check=True)
    assert off.stderr == b""


def children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, task.read_text().split())


def alive(pids: set[int]) -> list[int]:
    """Those that still run; one that has ended and that nobody has asked for has no command."""
    found = []
    for pid in pids:
        try:
            found += [pid] if Path(f"/proc/{pid}/cmdline").read_bytes() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_it_leaves_no_process_behind(how: signal.Signals, tmp_path: Path) -> None:
    """An interrupt as a terminal sends it, to all processes at once; a kill to the first alone."""
    run = subprocess.Popen(
        command(str(played(tmp_path / "record", rounds=1500)), "--jobs", "2"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    started: set[int] = set()
    deadline = time.monotonic() + 30
    while len(started) < 3 and run.poll() is None and time.monotonic() < deadline:
        started |= set(children(run.pid))  # two that work, and one that counts what they share
        time.sleep(0.01)
    assert len(started) == 3
    os.killpg(run.pid, how) if how == signal.SIGINT else run.kill()
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out) == (130 if how == signal.SIGINT else -how, b"")
    if how == signal.SIGINT:  # a worker whose parent was killed while it started says so itself
        assert b"Traceback" not in err
    while alive(started) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(started)


def test_the_tables_key_of_a_record_that_cannot_be_read_does_not_matter(runs: Runs) -> None:
    segment_file(runs.record, 1).write_bytes(b"")
    ran = runs("verify", "--table-key", str(runs.keys / "table.pub"))
    says(ran, 1, "is no segment of a record")


# --- what is no regular file: it is named, and never waited for -------------------------------


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
    code, said = ran(
        "script", "run", runs.folder / "rounds.json", "--record", runs.record, "--keys", runs.keys
    )
    assert (code, words in said) == (1, True), said
    assert ran(runs.record, program=(str(ROOT / "controller/audit/verify_record.py"),))[0] == 1


@pytest.mark.parametrize("name", STRANGE)
def test_a_case_leaves_out_what_can_be_no_segment(name: str, tmp_path: Path) -> None:
    make, words = STRANGE[name]
    place, case = tmp_path / "record", tmp_path / "case"
    written(place, *[note("x", 5000)] * 8)
    assert len(numbers(place)) > 2
    make(segment_file(place, 2))
    _, said = ran("audit", "export", place, "--out", case)
    assert f"segment 2: {words}" in said
    assert "00000002.seg: is no segment, and not in this case" in said
    there = case / "record" / "segments"
    assert [(there / f"{number:08d}.seg").exists() for number in (2, 3)] == [False, True]


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
