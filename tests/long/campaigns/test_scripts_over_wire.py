"""Every scripted round, of all examples and all scripts, dealt by the whole daemon: the same answer
as by the procedure alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.procedure.engine import Procedure
from controller.sim.scripts.runner import play_script, procedure_for
from hil.table.scripts.over_wire import playing
from tests.long.campaigns import SHARE
from tests.support.system.findings import findings
from tests.support.table.simulated.scripted import scripts

PARTS = [("examples", 1), ("classic", 5), ("maxtime", 4), ("mega", 4), ("sf21x", 5)]
"""Of each file, so that several tables can deal it side by side: most of the time goes into waiting
for daemons that start."""


@pytest.mark.parametrize(
    ("name", "part", "of"),
    [(name, part, of) for name, of in PARTS for part in range(of)],
)
def test_a_part_of_a_file_of_scripts(name: str, part: int, of: int, tmp_path: Path) -> None:
    """By configuration, for each of which the daemon is started once."""
    known: dict[bytes, Procedure] = {}
    every = [(one, procedure_for(one, known)) for one in scripts(name)]
    theirs = list(known.values())[::SHARE][part::of]
    rounds = [(one, procedure) for one, procedure in every if procedure in theirs]
    assert rounds
    otherwise = []
    with playing(tmp_path, rounds) as made:
        for scripted, procedure in rounds:
            wired = made.play(scripted, None, procedure)
            if not wired.ok or wired != play_script(scripted, None, procedure):
                otherwise.append((scripted.script.id, wired.failures))
        assert made.stage.daemon.starts == len(theirs)
    assert otherwise == []
    assert findings(tmp_path / "record") == []
