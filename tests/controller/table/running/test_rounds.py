"""Whole rounds of the four games: real supervisors, drivers and record, simulated devices, and
people who see nothing but prompts and lamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.audit.verify import verify
from controller.procedure.model.effects import Tell
from controller.sim.scripts import ScriptRound
from tests.support.paths import SCRIPT_FILES
from tests.support.table.simulated.scripted import Played, failures, played, scripts

EXAMPLES = scripts("examples")
OTHERS = [
    scripted for name in ("classic", "maxtime", "mega", "sf21x") for scripted in scripts(name)[::12]
]
"""All of them are dealt in tests/long/campaigns."""


def findings(record: Path) -> list[str]:
    report = verify(record)
    assert report.again > 0
    return [finding.what for finding in report.findings]


@pytest.mark.parametrize("scripted", EXAMPLES + OTHERS, ids=lambda one: one.script.id)
def test_a_scripted_round(scripted: ScriptRound, tmp_path: Path) -> None:
    found = played(tmp_path, scripted)
    assert failures(scripted, found.result) == []
    assert findings(tmp_path / "record") == []


def test_the_scripts_are_of_all_four_games() -> None:
    assert {one.script.game for one in EXAMPLES} == {"classic", "maxtime", "mega", "sf21x"}
    assert len(list(SCRIPT_FILES.glob("*.json"))) == 5


def _asked(found: Played, tell: Tell) -> int:
    return sum(prompt.tell is tell for prompt in found.robot.prompts)


def test_each_step_of_a_round_is_shown_once(tmp_path: Path) -> None:
    """A prompt is an instruction: who follows it is not told the same again."""
    scripted = next(one for one in EXAMPLES if one.script.game == "classic")
    found = played(tmp_path, scripted)
    assert found.robot.refused == []
    assert _asked(found, Tell.OPEN_TABLE) == _asked(found, Tell.LOAD_SHOE) == 1
    assert _asked(found, Tell.CLEAR) == 1
    assert found.robot.repeats == []
