"""Scripted rounds dealt by the whole daemon come out as the procedure alone plays them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from controller.cli import main
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision, Refused
from controller.sim.scripts.format import read_scripts
from controller.sim.scripts.runner import play_script, procedure_for
from hil.table.scripts.over_wire import over_wire, playing
from tests.support.sim.a_round import ROUND
from tests.support.system.findings import findings
from tests.support.table.simulated.scripted import scripts

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


@pytest.mark.timeout(400)
def test_rounds_of_each_game_come_out_the_same(tmp_path: Path) -> None:
    """What a script gets wrong is told in the same words: a round that is left open is void, and
    the next one comes out as it should."""
    known: dict[bytes, Procedure] = {}
    file = tmp_path / "wrong.json"
    file.write_text(WRONG)
    rounds = [(one, procedure_for(one, known)) for one in read_scripts(file)]
    for game in ("classic", "maxtime", "mega", "sf21x"):
        usual = [one for one in scripts(game) if not one.script.config]
        spread = usual[:: len(usual) // 2][:2]
        rounds += [(one, procedure_for(one, known)) for one in spread]
    wrong = {"too-few", "left-over", "refused", "no-decision"}
    with playing(tmp_path / "house", rounds) as made:
        for scripted, procedure in rounds:
            told: list[str] = []
            wired: list[str] = []

            def watch(event: Event, answer: Decision | Refused, to: list[str] = told) -> None:
                to.append(type(event).__name__)

            def watch_wire(event: Event, answer: Decision | Refused, to: list[str] = wired) -> None:
                to.append(type(event).__name__)

            alone = play_script(scripted, watch, procedure)
            assert alone.ok == (alone.id not in wrong)
            assert made.play(scripted, watch_wire, procedure) == alone
            assert wired == told
        assert made.stage.daemon.starts == 4  # one for each configuration
    assert findings(tmp_path / "house" / "record") == []


def test_what_cannot_stand_at_a_table_is_said_before_anything_is_begun() -> None:
    scripted = next(one for one in scripts("maxtime") if one.script.first_round_of_shuffle)
    later = replace(scripted.script, first_round_of_shuffle=False)
    every = replace(scripted, script=later, cards=tuple(range(52)))
    with (
        pytest.raises(UsageProblem, match="first_round_of_shuffle"),
        over_wire([(every, procedure_for(scripted))]),
    ):
        pass


# --- a table that fails -----------------------------------------------------------------------

Answers = Callable[[httpx.Request], httpx.Response]
ERROR = b'{"error": {"code": "too_much", "what": "too many requests", "wait": 2}}'


def _answers(status: int, content: bytes) -> Answers:
    return lambda request: httpx.Response(status, content=content, request=request)


def _resets(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("connection reset by peer", request=request)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (_answers(429, ERROR), "TooMuch: 429 too_much: too many requests"),
        (_answers(503, b"<html>"), "Stopped: 503 no_api: that is no answer of the control API"),
        (_resets, "Unreachable: "),
    ],
)
def test_a_table_that_cannot_be_closed_is_one_line(
    answers: Answers,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Under load the last act, which closes the table, was refused with 429."""
    usual = httpx.AsyncHTTPTransport.handle_async_request

    async def asked(to: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        if b"TableClosed" in request.content:
            return answers(request)
        return await usual(to, request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", asked)
    file = tmp_path / "round.json"
    file.write_text(json.dumps({"schema": 1, "rounds": [ROUND]}))
    assert main(["script", "run", str(file), "--over", "wire"]) == 70
    err = capsys.readouterr().err
    (line,) = (line for line in err.splitlines() if line.startswith("holecard: "))
    assert f"the table has failed: {words}" in line
    assert "Traceback" not in err
