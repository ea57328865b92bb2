"""`holecard script run --over`: whatever rooms above announce plays the rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from controller.procedure.engine import Procedure
from controller.sim import overs
from controller.sim.scripts import PlaysScript, RoundResult, RoundWatcher, ScriptRound
from controller.sim.scripts.command import OverFailed
from controller.sim.scripts.runner import play_script
from tests.controller.sim.conftest import Run
from tests.support.sim.a_round import ROUND, changed

HERE = "tests.controller.sim.scripts.test_over"
begun: list[list[str]] = []
"""The rounds that each run was told of before it began, by id."""

Announce = Callable[[str], None]


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Announce:
    """Announces what plays over air, and nothing else."""
    begun.clear()

    def make(target: str) -> None:
        def points(group: str) -> tuple[EntryPoint, ...]:
            return (EntryPoint("air", target, group),) if group == overs.GROUP else ()

        monkeypatch.setattr(overs, "entry_points", points)

    return make


@contextmanager
def over_air(rounds: Sequence[tuple[ScriptRound, Procedure]]) -> Iterator[PlaysScript]:
    begun.append([scripted.script.id for scripted, _ in rounds])

    def play(
        scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        return play_script(scripted, watch, procedure)

    yield play


@contextmanager
def over_ice(rounds: Sequence[tuple[ScriptRound, Procedure]]) -> Iterator[PlaysScript]:
    def play(
        scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        raise OverFailed("the ice has broken")

    yield play


AIR = ("--over", "air")


@pytest.mark.parametrize("form", [(), ("--json",), ("--verbose",)])
def test_the_answer_is_printed_the_same(
    form: tuple[str, ...], run: Run, announce: Announce
) -> None:
    announce(f"{HERE}:over_air")
    rounds = (ROUND, changed(id="R-2", expect={"seat_net": {"1": 5}}))
    alone = run(*rounds, options=form)
    assert alone[0] == 1
    assert run(*rounds, options=(*form, *AIR)) == alone
    assert begun == [["R-1", "R-2"]]


def test_what_has_failed_is_neither_right_nor_wrong(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_ice")
    code, out, err = run(ROUND, options=AIR)
    assert (code, out) == (70, "")
    assert err == "holecard: the ice has broken\n"


def test_nothing_begins_where_a_file_cannot_be_used(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_air")
    assert run(raw=b"no script", options=AIR)[0] == 2
    assert begun == []


def test_over_takes_what_is_announced_and_no_more(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_air")
    assert run(ROUND, options=("--over", "engine"))[0] == 0
    code, out, err = run(ROUND, options=("--over", "steam"))
    assert (code, out) == (2, "")
    assert "choose from" in err
    assert "engine" in err
    assert "air" in err


@pytest.mark.parametrize("target", ["no_such_module:over", f"{HERE}:no_such_name"])
def test_what_cannot_be_loaded_is_named(target: str, run: Run, announce: Announce) -> None:
    announce(target)
    code, out, err = run(ROUND, options=AIR)
    assert (code, out) == (2, "")
    assert err.startswith(f"holecard: --over air: {target} cannot be loaded: ")
    assert err.endswith("; allowed: --over engine\n")


def test_what_keeps_a_record_of_its_own_takes_no_other(
    run: Run, announce: Announce, tmp_path: Path
) -> None:
    announce(f"{HERE}:over_air")
    place = tmp_path / "record"
    code, out, err = run(ROUND, options=(*AIR, "--record", str(place)))
    assert (code, out) == (2, "")
    assert "--over air keeps a record of its own; allowed: --over engine" in err
    assert not place.exists()
