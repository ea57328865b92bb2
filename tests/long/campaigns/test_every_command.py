"""No command ends with a traceback, whatever it is given, and its exit code is a documented one.

The commands are found from the parsers, so that none can be forgotten; GOOD has words with which
each does its work.
"""

import os
import random
import shutil
import signal
import socket
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
from tests.support.system.every_command import Command, every_command
from tests.support.system.forked_commands import Ended, Run, commands

COMMANDS = {one.name: one for one in every_command()}
KEYS, PEOPLE = ("--keys", "run/keys"), ("--file", "run/people.json", "--keys", "run/keys")
TWO = ("--by", "Ann Lee", "--and", "Bo Chan")
GOOD: dict[str, tuple[str, ...]] = {
    "config check": ("table.toml", "game.toml"),
    "config show": ("game.toml",),
    "procedure": ("game.toml",),
    "script run": ("rounds.json", "--record", "record", "--keys", "all-keys"),
    "par": ("game.toml", "--rounds", "50", "--policy", "strategy.toml"),
    "devices init": KEYS,
    "devices ports": (),
    "devices pair": ("ports/shoe", *KEYS, *TWO),
    "devices list": KEYS,
    "devices show": ("EW-1", *KEYS),
    "devices forget": ("EW-1", *KEYS, *TWO),
    "keys new": ("table", "--dir", "new-keys"),
    "keys show": ("--dir", "all-keys"),
    "audit verify": (
        *("record", "--table-key", "all-keys/table.pub", "--checkpoint", "a.note"),
        *("--witness-key", "all-keys/witness.pub", "--jobs", "1"),
    ),
    "audit show": ("record", "--seq", "1-9", "--index", "record/index.db"),
    "audit tail": ("record",),
    "audit open": ("record", "--round", "1", "--keys", "all-keys"),
    "audit accept-tail": ("record", "--keys", "all-keys", "--by", "Ann", "--second", "Bo"),
    "audit sql": ("record", "SELECT * FROM rounds", "--index", "record/index.db"),
    "audit rebuild-index": ("record",),
    "audit export": ("record", "--all", "--out", "out.zip"),
    "audit check-case": ("case",),
    "audit prove": ("record", "--seq", "3", "--checkpoint", "a.note", "--out", "out.json"),
    "audit check-proof": ("proof.json", "--table-key", "all-keys/table.pub"),
    "audit cosign": ("record", "--keys", "all-keys", "--archive", "archive", "--out", "b.note"),
    "audit witnessed": ("record", "a.note", "--witness-key", "all-keys/witness.pub"),
    "audit retire": (
        *("record", "--before", "2030-01-01", "--out", "old.zip", "--keys", "all-keys"),
        *("--by", "Ann", "--and", "Bo"),
    ),
    "review": ("record", "--port", "0", "--texts", "texts.toml"),
    "people init": PEOPLE,
    "people list": PEOPLE,
    "people add": ("X-1", "--name", "Cy", "--roles", "dealer", *TWO, *PEOPLE),
    "people disable": ("D-17", *TWO, *PEOPLE),
    "people enable": ("D-17", *TWO, *PEOPLE),
    "people reset": ("D-17", *TWO, *PEOPLE),
    "people roles": ("D-17", "dealer", *TWO, *PEOPLE),
    "serve": ("table.toml", "--allow-root"),
    "doctor": ("table.toml", "--release", "a.note", "--release-key", "all-keys/witness.pub"),
    "bench": ("--section", "link"),
    "conform": ("--profile", "shoe", "--port", "ports/shoe", "--keys", "run/keys"),
    "demo": ("--rounds", "1", "--dir", "demo", "--game", "classic"),
    "sim shoe": ("--dir", "device"),
    "sim shuffler": ("--dir", "device"),
    "sim station": ("--dir", "device", "--seat", "1"),
    "sim do": ("control.sock", "describe"),
    "sim breaks": (),
}
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


def test_every_command_is_here() -> None:
    assert set(GOOD) == set(COMMANDS)


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
