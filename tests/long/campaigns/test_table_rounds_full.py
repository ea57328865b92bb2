"""Every scripted round, dealt at a running table in simulated time; and one that is dealt to its
end whichever record the controller dies at, in each of the four games."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.sim.scripts import ScriptRound
from tests.long.campaigns import SHARE
from tests.support.procedure.random_games import GAMES
from tests.support.table.simulated.scripted import failures, played, scripts
from tests.support.table.simulated.serving import dealt

ALL = [one for name in ("classic", "maxtime", "mega", "sf21x") for one in scripts(name)]


@pytest.mark.parametrize("scripted", ALL[::SHARE], ids=lambda one: one.script.id)
def test_a_scripted_round(scripted: ScriptRound, tmp_path: Path) -> None:
    assert failures(scripted, played(tmp_path, scripted).result) == []


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("game", GAMES)
def test_a_round_whichever_record_is_the_last(game: str, before: bool, tmp_path: Path) -> None:
    whole = dealt(tmp_path / "whole", game)
    for kill in range(0, whole.groups, SHARE):
        found = dealt(tmp_path / str(kill), game, kill, before=before)
        assert found.state == whole.state, kill
        assert found.settled == whole.settled, kill
        assert found.findings == [], kill
