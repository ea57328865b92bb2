"""Every scripted round, of all examples and all scripts, dealt by the whole daemon: the same answer
as by the procedure alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.procedure.engine import Procedure
from controller.sim.runner import play_script, procedure_for
from hil.table.over_wire import playing
from tests.table.scripted import scripts
from tests.whole.test_over_wire import findings


@pytest.mark.parametrize("name", ["examples", "classic", "maxtime", "mega", "sf21x"])
def test_a_file_of_scripts(name: str, tmp_path: Path) -> None:
    known: dict[bytes, Procedure] = {}
    rounds = [(one, procedure_for(one, known)) for one in scripts(name)]
    otherwise = []
    with playing(tmp_path, rounds) as made:
        for scripted, procedure in rounds:
            wired = made.play(scripted, None, procedure)
            if not wired.ok or wired != play_script(scripted, None, procedure):
                otherwise.append((scripted.script.id, wired.failures))
        assert made.stage.daemon.starts == len(known)
    assert otherwise == []
    assert findings(tmp_path / "record") == []
