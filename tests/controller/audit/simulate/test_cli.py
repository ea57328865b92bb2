"""`holecard script run --record`: the resulting record."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from controller import cli
from controller.audit.keys import ROLES, create_key
from controller.audit.read.reader import records
from controller.audit.replay import read_decision
from controller.procedure.model.effects import RoundOver
from tests.support.audit.record.running import Runs, kinds
from tests.support.paths import ROOT
from tests.support.sim.a_round import ROUND, changed

EXAMPLES = ROOT / "tests/scripts/examples.json"


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
    assert last == f"holecard: DIR: recorded, the last record is {len(kinds(run.place))}"
    made = {file.name: file.read_bytes() for file in (run.place / "keys").iterdir()}
    assert {"table.key", "hole.key", "surveillance.key", "surveillance.pub"} <= set(made)
    for name in made:
        assert (run.place / "keys" / name).stat().st_mode & 0o077 == 0
    again = run()
    assert again.err.splitlines()[0] == demo
    assert {file.name: file.read_bytes() for file in (run.place / "keys").iterdir()} == made
    assert kinds(run.place).count("opened") == 2


def test_verbose_shows_only_the_scripts_events(run: Runs) -> None:
    rounds = (changed(first_round_of_shuffle=False),)
    plain = run("--verbose", rounds=rounds)
    kept = run("--record", str(run.place), "--verbose", rounds=rounds)
    assert kept.out == plain.out.replace("Round 1", "Round 2")
    assert "shuffle" not in kept.out.lower()


def test_given_keys_are_used(run: Runs, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    for role in ROLES[:3]:
        create_key(keys, role)
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
    keys = tmp_path / "keys"
    for role in ROLES[:3]:
        create_key(keys, role)
    (keys / "surveillance.key").unlink()
    assert run("--record", str(run.place), "--keys", str(keys)).code == 0


def test_no_rounds_leave_no_record(run: Runs) -> None:
    ran = run("--record", str(run.place), rounds=())
    assert ran == (0, "0 rounds: nothing was checked\n", "")
    assert not run.place.exists()


def test_a_file_that_cannot_be_used_leaves_no_record(run: Runs) -> None:
    later = changed(id="R-2", config={"shuffle.max_rounds": 1}, first_round_of_shuffle=False)
    for bad, words in (
        (changed(id="R-2", game="poker"), "poker"),
        (later, "this game shuffles after every round"),
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


def test_the_next_run_continues_after_a_kill(tmp_path: Path) -> None:
    """After a kill at any moment no acknowledged record is missing, and no round stays open."""
    place = tmp_path / "record"
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
        for effect in read_decision(record).effects
        if isinstance(effect, RoundOver)
    ]
