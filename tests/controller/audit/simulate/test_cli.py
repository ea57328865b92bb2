"""`holecard script run --record`: the resulting record."""

import argparse
import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

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
from controller.audit.files import Disk
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import records, segments
from controller.audit.replay import OtherProcedure, ReplayMismatch, decode_decision
from controller.audit.simulate import record_par, rounds
from controller.audit.verify import verify
from controller.config import load_table
from controller.games import game_of_table, unburned_game
from controller.procedure.engine import Procedure
from controller.procedure.model import events as e
from controller.procedure.model.effects import RoundOver
from controller.procedure.model.state import Shoe, State, Step
from controller.sim.play import POLICIES, Play, PlaySetup, basic, stakes_for
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.scripted import decisions, ends, events, replayed
from tests.support.audit.record.table import failing, kinds_of
from tests.support.audit.tools.audit_command import table_keys
from tests.support.audit.tools.outside import flip
from tests.support.audit.verifying import read_independently
from tests.support.paths import ROOT
from tests.support.sim.a_round import ROUND, changed

EXAMPLES = ROOT / "tests/scripts/examples.json"


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The single error line, after the warning about demo keys."""
        *before, last = self.err.splitlines()
        usual = ("demo keys", ": recorded, the last record is ")
        assert all(any(words in line for words in usual) for line in before), self.err
        assert "Traceback" not in self.err
        return last


class Runs:
    """Runs scripted rounds into DIR."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = folder / "DIR"
        self._file = folder / "rounds.json"
        self._capsys = capsys

    def __call__(self, *options: str, rounds: tuple[dict[str, Any], ...] = (ROUND,)) -> Ran:
        self._file.write_text(json.dumps({"schema": 1, "rounds": rounds}))
        code = cli.main(
            ["script", "run", str(self._file), *(options or ("--record", str(self.place)))]
        )
        out, err = self._capsys.readouterr()
        return Ran(code, out, err.replace(str(self.place), "DIR"))


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys)


# --- what it does -----------------------------------------------------------------------------


def test_the_output_is_the_same_with_a_record(run: Runs) -> None:
    rounds = (ROUND, changed(id="bad", expect={"seat_net": {"1": 5}}))
    for form in ((), ("--json",)):
        plain = run(*(form or ("--over", "engine")), rounds=rounds)
        kept = run("--record", str(run.place), *form, rounds=rounds)
        assert (kept.code, kept.out) == (plain.code, plain.out) == (1, plain.out)


def test_demo_keys_are_created_once_with_a_warning(run: Runs) -> None:
    first = run()
    assert first.code == 0
    demo, last = first.err.splitlines()
    assert demo.startswith("holecard: DIR/keys: demo keys, ")
    assert demo.endswith("holecard keys new")
    assert last == f"holecard: DIR: recorded, the last record is {len(kinds_of(run.place))}"
    made = {file.name: file.read_bytes() for file in (run.place / "keys").iterdir()}
    assert {"table.key", "hole.key", "surveillance.key", "surveillance.pub"} <= set(made)
    for name in made:
        assert (run.place / "keys" / name).stat().st_mode & 0o077 == 0
    assert run().err.splitlines()[0] == demo
    assert {file.name: file.read_bytes() for file in (run.place / "keys").iterdir()} == made
    assert kinds_of(run.place).count("opened") == 2


def test_verbose_shows_only_the_scripts_events(run: Runs) -> None:
    rounds = (changed(first_round_of_shuffle=False),)
    plain = run("--verbose", rounds=rounds)
    kept = run("--record", str(run.place), "--verbose", rounds=rounds)
    assert kept.out == plain.out.replace("Round 1", "Round 2")
    assert "shuffle" not in kept.out.lower()


def test_given_keys_are_used(run: Runs, tmp_path: Path) -> None:
    keys = table_keys(tmp_path / "keys")
    ran = run("--record", str(run.place), "--keys", str(keys))
    assert ran.code == 0
    assert "demo" not in ran.err
    assert not (run.place / "keys").exists()
    other = run()
    assert other.code == 2
    assert other.err == (
        "holecard: --keys: the record was begun with other keys than demo keys: DIR/keys has none;"
        " allowed: the directory of the keys that it was begun with\n"
    )
    assert run("--record", str(run.place), "--keys", str(keys)).code == 0


def test_surveillances_private_key_is_not_needed(run: Runs, tmp_path: Path) -> None:
    keys = table_keys(tmp_path / "keys")
    (keys / "surveillance.key").unlink()
    assert run("--record", str(run.place), "--keys", str(keys)).code == 0


def test_no_rounds_leave_no_record(run: Runs) -> None:
    assert run("--record", str(run.place), rounds=()) == (0, "0 rounds: nothing was checked\n", "")
    assert not run.place.exists()


def test_a_file_that_cannot_be_used_leaves_no_record(run: Runs) -> None:
    for bad, words in (
        (changed(id="R-2", game="poker"), "poker"),
        (
            changed(id="R-2", config={"shuffle.max_rounds": 1}, first_round_of_shuffle=False),
            "this game shuffles after every round",
        ),
    ):
        ran = run("--record", str(run.place), rounds=(ROUND, bad))
        assert (ran.code, ran.out) == (2, "")
        assert words in ran.err
        assert not run.place.exists()


def test_help_explains_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["script", "run", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--record DIR" in out
    assert "demo keys" in out
    assert "74 the disk has failed or is full" in out


# --- the whole command ------------------------------------------------------------------------


def holecard(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "controller.cli", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_next_run_continues_after_a_kill(place: Path) -> None:
    """After a kill at any moment no acknowledged record is missing, and no round stays open."""
    first = holecard("script", "run", str(EXAMPLES), "--verbose", "--record", str(place))
    assert first.stdout is not None
    said = []
    for line in first.stdout:
        said += re.findall(r"\* Round (\d+) is over", line)
        if len(said) > 2:
            break
    first.kill()
    rest, _ = first.communicate()
    said += re.findall(r"\* Round (\d+) is over", rest)
    assert set(map(int, said)) <= set(over(place))
    second = holecard("script", "run", str(EXAMPLES), "--record", str(place))
    out, err = second.communicate(timeout=100)
    assert second.returncode == 0, err
    assert "20 rounds: 20 as expected, 0 not" in out
    assert over(place) == list(range(1, len(over(place)) + 1))


def over(place: Path) -> list[int]:
    """The finished rounds according to the record."""
    return [
        effect.round
        for _, record in records(place)
        if record.kind == "decision"
        for effect in decode_decision(record).effects
        if isinstance(effect, RoundOver)
    ]


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
    keys = table_keys(tmp_path / "keys")
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
    with monkeypatch.context() as patched:
        patched.setattr(Disk, call, failing(code))
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
    real = Disk.create

    def fills_up(disk: Disk, file: Path) -> int:
        if len(made) == room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        made.append(file)
        return real(disk, file)

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "create", fills_up)
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
    assert len(kinds_of(run.place)) == there[-1].seq
    right(run.place)
    assert run(rounds=many).code == 0
    now = [record for _, record in records(run.place)]
    assert (now[: len(there)], now[-1].kind) == (there, "checkpoint")
    right(run.place)


def right(place: Path) -> None:
    """According to both verifiers."""
    assert (verify(place).findings, read_independently(place)["exit"]) == ((), 0)


def test_a_damaged_record_is_exit_1(run: Runs) -> None:
    run()
    file = segment_file(run.place, 1)
    flip(file, 200)
    data = file.read_bytes()
    ran = run()
    assert ran.code == 1
    assert ran.line.startswith("holecard: DIR/segments/00000001.seg: ")
    assert file.read_bytes() == data


def test_a_name_with_a_newline_is_printed_on_one_line(run: Runs, tmp_path: Path) -> None:
    odd = tmp_path / "two\nlines"
    odd.write_text("")
    ran = run("--record", str(odd))
    assert (ran.code, ran.err.count("\n")) == (2, 1)


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


# --- simulated rounds -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maxtime", "sf21x", "classic", "mega"])
def test_simulated_rounds_replay(place: Path, name: str) -> None:
    game = unburned_game(name, {}, "a test")
    last = record_par(place, game, 120, keyring, seed=5, strategy=basic(name), size=256 * 1024)
    replay = replayed(place)
    kinds = kinds_of(place)
    assert last == len(kinds)
    assert (replay.again, replay.taken) == (kinds.count("decision") + kinds.count("refusal"), 0)
    assert sum(ends(record) for record in decisions(place)) == 120
    assert sum(isinstance(event, e.ShuffleStarted) for event in events(place)) > 1
    assert len(list(segments(place))) > 4


def test_the_same_seed_deals_the_same_rounds(tmp_path: Path) -> None:
    game = unburned_game("mega", {}, "a test")
    told = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        record_par(tmp_path / name, game, 20, keyring, seed=seed, seats=3)
        told.append([type(event).__name__ for event in events(tmp_path / name)])
        cards = [event.card for event in events(tmp_path / name) if isinstance(event, e.CardDrawn)]
        told[-1] += [str(card) for card in cards]
    assert told[0] == told[1] != told[2]


def test_a_table_that_burns_cards_is_simulated_too(place: Path) -> None:
    table = load_table("blackjack-1", {"burn.on_shuffle": 2})
    record_par(place, game_of_table(table), 60, keyring, seats=7, table="blackjack-1")
    told = events(place)
    loads = sum(isinstance(event, e.ShoeLoaded) for event in told)
    assert loads > 1
    assert sum(isinstance(event, e.CardBurned) for event in told) == 2 * loads
    replayed(place)


def test_a_simulation_that_is_recorded_begins_with_an_empty_shoe() -> None:
    game = unburned_game("classic", {}, "a test")
    stakes = stakes_for(game, side=False)
    for setup, start in (
        (PlaySetup(1, stakes, True), State(step=Step.WAGERING, shoe=Shoe(loaded=True))),
        (PlaySetup(1, stakes, False), State()),
    ):
        with pytest.raises(ValueError, match="from an empty shoe"):
            Play(Procedure(game), POLICIES["stand"], setup, lambda: 0.5, start=start)
