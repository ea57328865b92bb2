"""Scripted rounds dealt by the whole daemon come out as the procedure alone plays them."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.sim.scripts import ScriptRound
from controller.sim.scripts.runner import play_script, procedure_for
from hil.table.scripts.over_wire import over_wire, playing
from tests.support.system.findings import findings
from tests.support.table.simulated.scripted import scripts

Round = tuple[ScriptRound, Procedure]


def usual(game: str, many: int) -> list[Round]:
    """So many rounds of a game as its sheet has it, spread over its scripts, which one start of
    the daemon serves."""
    found = [one for one in scripts(game) if not one.script.config]
    known: dict[bytes, Procedure] = {}
    return [(one, procedure_for(one, known)) for one in found[:: len(found) // many][:many]]


@pytest.mark.timeout(400)
def test_a_sample_of_each_game_comes_out_the_same(tmp_path: Path) -> None:
    rounds = [one for game in ("classic", "maxtime", "mega", "sf21x") for one in usual(game, 2)]
    with playing(tmp_path / "house", rounds) as made:
        for scripted, procedure in rounds:
            told: list[str] = []
            wired: list[str] = []

            def watch(event: Event, answer: Decision | Refused, to: list[str] = told) -> None:
                to.append(type(event).__name__)

            def watch_wire(event: Event, answer: Decision | Refused, to: list[str] = wired) -> None:
                to.append(type(event).__name__)

            alone = play_script(scripted, watch, procedure)
            assert alone.ok
            assert made.play(scripted, watch_wire, procedure) == alone
            assert wired == told
        starts = made.stage.daemon.starts
    assert starts == 4  # one for each configuration
    assert findings(tmp_path / "house" / "record") == []


WRONG = """
{"schema": 1, "rounds": [
 {"id": "too-few", "game": "classic", "seats": [{"seat": 1, "bets": {"main": 1000}}],
  "shoe": ["9H", "7D", "8S"], "actions": []},
 {"id": "left-over", "game": "classic", "seats": [{"seat": 1, "bets": {"main": 1000}}],
  "shoe": ["TH", "7D", "9S", "TD", "2C"],
  "actions": [{"phase": "play", "seat": 1, "hand": 0, "do": "stand"}]},
 {"id": "refused", "game": "classic",
  "seats": [{"seat": 2, "bets": {"main": 1000, "diamond": 500}}],
  "shoe": ["TH", "7D", "9S", "TD"],
  "actions": [{"phase": "play", "seat": 2, "hand": 0, "do": "split"},
              {"phase": "play", "seat": 2, "hand": 0, "do": "stand"}],
  "expect": {"seat_net": {"2": 5}}},
 {"id": "no-decision", "game": "classic", "seats": [{"seat": 3, "bets": {"main": 1000}}],
  "shoe": ["TH", "7D", "6S", "TD"], "actions": []},
 {"id": "after-it", "game": "classic", "seats": [{"seat": 1, "bets": {"main": 1000}}],
  "shoe": ["TH", "7D", "9S", "TD"], "first_round_of_shuffle": false,
  "actions": [{"phase": "play", "seat": 1, "hand": 0, "do": "stand"}],
  "expect": {"seat_net": {"1": 1000}}}
]}
"""


@pytest.mark.timeout(200)
def test_what_a_script_gets_wrong_is_told_in_the_same_words(tmp_path: Path) -> None:
    """A round that is left open is void, and the next one comes out as it should."""
    from controller.sim.scripts.format import read_scripts

    file = tmp_path / "wrong.json"
    file.write_text(WRONG)
    known: dict[bytes, Procedure] = {}
    rounds = [(one, procedure_for(one, known)) for one in read_scripts(file)]
    with playing(tmp_path / "house", rounds) as made:
        for scripted, procedure in rounds:
            alone = play_script(scripted, None, procedure)
            assert made.play(scripted, None, procedure) == alone
            assert alone.ok == (alone.id == "after-it")
    assert findings(tmp_path / "house" / "record") == []


def test_what_cannot_stand_at_a_table_is_said_before_anything_is_begun() -> None:
    scripted = next(one for one in scripts("maxtime") if one.script.first_round_of_shuffle)
    from msgspec.structs import replace

    cards = replace(scripted, script=replace(scripted.script, first_round_of_shuffle=False))
    every = replace(cards, cards=tuple(range(52)))
    with (
        pytest.raises(UsageProblem, match="first_round_of_shuffle"),
        over_wire([(every, procedure_for(scripted))]),
    ):
        pass
