"""No command ends with a traceback, whatever it is given, and its exit code is a documented one.

The commands are found from the parsers, so that none can be forgotten; GOOD has words with which
each does its work.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import cli
from controller.audit.keys import create_key
from controller.errors import EXIT_BROKEN
from tests.support.audit.record.scripted import read_rounds
from tests.support.daemon.doctor_house import house
from tests.support.paths import ROOT
from tests.support.sim.a_round import ROUND
from tests.support.system.every_command import GOOD, Command, every_command
from tests.support.system.forked_commands import Ended, Run, commands

COMMANDS = {one.name: one for one in every_command()}
COSIGNED = ("--archive", "archive", "--out", "a.note")
RUNS_ON = frozenset(
    {"serve", "review", "demo", "bench", "conform", "devices pair", "sim shoe", "sim shuffler"}
    | {"sim station", "people add", "people reset"}
)
"""They run until they are interrupted, or for long."""
FINITE = sorted(set(GOOD) - RUNS_ON)


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with commands() as made:
        yield made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All that the commands are about, and paths that are none of it."""
    folder = tmp_path_factory.mktemp("every")
    with house(folder):
        for role in ("table", "hole", "surveillance", "witness"):
            name = "floor/1" if role == "witness" else None
            create_key(folder / "all-keys", role, name)
        read_rounds(folder, ROUND)
        (folder / "game.toml").write_bytes((ROOT / "configs/games/classic.toml").read_bytes())
        strategies = ROOT / "controller/sim/play/strategies"
        (folder / "strategy.toml").write_bytes((strategies / "classic.toml").read_bytes())
        (folder / "texts.toml").write_text("")
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(folder)
            for words in (
                ["script", "run", "rounds.json", "--record", "record", "--keys", "all-keys"],
                ["audit", "export", "record", "--all", "--out", "case"],
                ["audit", "prove", "record", "--seq", "3", "--out", "proof.json"],
                ["audit", "cosign", "record", "--keys", "all-keys", *COSIGNED],
                ["audit", "rebuild-index", "record"],
            ):
                assert cli.main(words) == 0
        _make_bad(folder / "bad")
        yield folder


BAD = ("missing", "directory", "unreadable", "loop", "garbage", "empty", "pipe", "long" * 80)


def _make_bad(folder: Path) -> None:
    """Files that are not what any command expects."""
    folder.mkdir()
    (folder / "directory").mkdir()
    (folder / "unreadable").write_text("nobody may read it")
    (folder / "unreadable").chmod(0)
    (folder / "loop").symlink_to("loop")
    (folder / "garbage").write_bytes(random.Random(1).randbytes(5000))
    (folder / "empty").touch()
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)
        one.bind("pipe")
        os.chdir(here)


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy that a command may change."""
    ignored = shutil.ignore_patterns("pipe")
    return shutil.copytree(made, tmp_path / "every", symlinks=True, ignore=ignored)


def check(command: Command, words: list[str], ended: Ended) -> None:
    where = (command.name, words, ended)
    assert "Traceback" not in ended.err, where
    assert "internal error" not in ended.err, where
    assert "Exception ignored" not in ended.err, where
    code = 130 if ended.code == -signal.SIGINT else ended.code  # as a shell reports it
    assert code in command.codes() - {EXIT_BROKEN}, where
    assert not ended.late, where


@pytest.mark.parametrize("name", GOOD)
def test_files_that_are_none(name: str, run: Run, place: Path) -> None:
    """Each file that a command is given is missing, a directory, unreadable, garbage and so on."""
    command, good = COMMANDS[name], GOOD[name]
    files = [at for at, word in enumerate(good) if (place / word).exists() and word != "1"]
    for at in files:
        for bad in BAD:
            words = [*command.path, *good]
            words[len(command.path) + at] = f"bad/{bad}"
            limit = 2.0 if name in RUNS_ON else 20.0
            check(command, words, run(words, cwd=str(place), limit=limit))


@pytest.mark.parametrize("name", FINITE)
def test_streams_that_cannot_be_used(name: str, run: Run, place: Path) -> None:
    command = COMMANDS[name]
    words = [*command.path, *GOOD[name]]
    for options in (
        {"stdout": "closed"},
        {"stdout": "gone"},
        {"stdout": "full"},
        {"stderr": "closed"},
        {"stderr": "full"},
        {"stdout": "full", "stderr": "full"},
        {"stdin": "closed", "stdout": "closed", "stderr": "closed"},
        {"encoding": "ascii"},
    ):
        ended = run(words, cwd=str(place), **options)
        check(command, [*words, str(options)], ended)
        if options.get("stdout") == "closed":
            assert ended.out == ""


@pytest.mark.parametrize("name", GOOD)
def test_an_environment_without_anything(name: str, run: Run, place: Path) -> None:
    """No HOME, no room for a file, no working directory, no arguments."""
    command, good = COMMANDS[name], GOOD[name]
    home = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "HOLECARD_KEYS"))
    words = [*command.path, *good]
    limit = 2.0 if name in RUNS_ON else 20.0
    for options in (
        {"environment": home},
        {"file_bytes": 0},
        {"file_bytes": 1500},
        {"remove_cwd": True},
    ):
        ended = run(words, cwd=str(place), limit=limit, **options)
        check(command, [*words, str(options)], ended)
    ended = run(command.path, cwd=str(place), environment=home, limit=limit)
    check(command, [*command.path], ended)


@pytest.mark.parametrize("name", GOOD)
def test_an_interrupt_at_any_time(name: str, run: Run, place: Path) -> None:
    """Ctrl-C while a command runs; 130 as documented, or it was done."""
    command = COMMANDS[name]
    words = [*command.path, *GOOD[name]]
    took = 1.5 if name in RUNS_ON else run(words, cwd=str(place)).seconds
    rng = random.Random(name)
    for _ in range(3):
        after = rng.uniform(0.0, took)
        ended = run(words, cwd=str(place), interrupt_after=after)
        check(command, [*words, f"interrupted after {after:.3f} s"], ended)


# --- ports, daemons and workers ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["review", "demo", "serve"])
def test_a_port_in_use(name: str, run: Run, place: Path) -> None:
    command, words = COMMANDS[name], [name, *GOOD[name]]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        if name == "review":
            words[words.index("0")] = port
        elif name == "demo":
            words += ["--page-port", port]
        else:
            file = place / "table.toml"
            file.write_text(re.sub(r"(?m)^port = \d+", f"port = {port}", file.read_text()))
        ended = run(words, cwd=str(place), limit=20.0)
    check(command, words, ended)
    assert ended.code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--rounds", "500", "--plain"),
        ("script", "run", "many.json", "--over", "wire"),
        ("par", "game.toml", "--rounds", "90000000", "--jobs", "2"),
    ],
)
def test_a_child_process_that_dies(words: tuple[str, ...], place: Path) -> None:
    """The daemon of a table, or a worker: one line, and 70."""
    many = [{**ROUND, "id": f"R-{number}"} for number in range(1, 400)]
    (place / "many.json").write_text(json.dumps({"schema": 1, "rounds": many}))
    command = [sys.executable, "-m", "controller.cli", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            os.kill(_working_child(process.pid), signal.SIGKILL)
            _, err = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode == EXIT_BROKEN, err
    assert "Traceback" not in err
    assert "internal error" not in err
    assert err.splitlines()[-1].startswith("holecard: "), err


def _working_child(pid: int) -> int:
    """The number of a child that has computed for a second."""
    ticks = os.sysconf("SC_CLK_TCK")
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            used = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11]
            if int(used) > ticks:
                return int(child)
        time.sleep(0.01)
    raise TimeoutError("no child works")


# --- the stand-alone verifier -----------------------------------------------------------------

VERIFIER = ROOT / "controller/audit/verify_record.py"


def _alone(place: Path, *words: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    """Run the verifier; `shell` redirects its streams."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, str(VERIFIER), *words]
    return subprocess.run(
        command, cwd=place, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("bad", BAD)
def test_the_verifier_is_given_what_is_no_record(bad: str, place: Path) -> None:
    key = ("--witness-key", "all-keys/witness.pub")
    for words in (
        (f"bad/{bad}",),
        ("record", "--table-key", f"bad/{bad}"),
        ("record", "--checkpoint", f"bad/{bad}", *key),
        ("record", "--checkpoint", "a.note", "--witness-key", f"bad/{bad}"),
    ):
        ended = _alone(place, *words)
        assert "Traceback" not in ended.stderr, ended
        assert ended.returncode in (1, 2), ended


@pytest.mark.parametrize(
    ("shell", "codes"),
    [
        (">&-", (0, 3)),
        (">/dev/full", (74,)),
        (">/dev/full 2>/dev/full", (74, 120)),
        ("2>&-", (0, 3)),
        ("<&- >&- 2>&-", (0, 3)),
    ],
)
def test_the_verifiers_streams_cannot_be_used(
    shell: str, codes: tuple[int, ...], place: Path
) -> None:
    ended = _alone(place, "record", shell=shell)
    assert "Traceback" not in ended.stderr
    assert ended.returncode in codes


def test_the_verifiers_reader_goes_away(place: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, str(VERIFIER), "record"]
    with os.fdopen(writes, "wb") as to:
        ended = subprocess.run(
            command, cwd=place, stdout=to, stderr=subprocess.PIPE, timeout=100, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")
