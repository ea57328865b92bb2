"""Both engines are one procedure; the state is a fold, and what a step shows follows from it.

The comparison is a short run; `make campaign` plays at least 20,000 rounds of each game, until
every row has fired.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from random import Random
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from controller.procedure.engine import EVENTS, LiveTable, Procedure
from controller.procedure.model.effects import Effect
from controller.procedure.model.row import Refused
from controller.procedure.model.state import WAITING, State, Step
from tests.support.procedure.differential import compare
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import RandomTable, Recorder, fresh

_GAMES_EACH: Final = 12
_ROUNDS: Final = 15
_COMPARED: Final = 600
"""Rounds of each game."""


def _leaves(kind: type[Any]) -> list[type[Any]]:
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] or [kind]


_ANY_EVENT: Final[Any] = reduce(or_, EVENTS)
_ANY_EFFECT: Final[Any] = reduce(or_, _leaves(Effect))


@pytest.mark.parametrize("name", GAMES)
def test_a_record_of_events_gives_back_every_state_and_what_it_shows(name: str) -> None:
    steps: set[Step] = set()
    for number in range(_GAMES_EACH):
        seed = f"recovery {name} {number}"
        game, what = some_game(Random(seed), name)
        procedure, recorder = Procedure(game), Recorder()
        RandomTable(procedure, seed, watch=recorder).play(_ROUNDS)
        engines = procedure, Procedure(fresh(game)), LiveTable(fresh(game))
        s = State()
        for _, event, decision in recorder.answers:
            if isinstance(decision, Refused):
                continue
            read = _written_and_read(event, _ANY_EVENT)
            shown = procedure.shows(decision.state)
            for engine in engines:
                assert engine.step(s, read) == decision, f"{seed}: {what}: {event}"
                assert engine.shows(decision.state) == shown, f"{seed}: {what}: {event}"
            assert decision.effects[-len(shown) :] == shown != (), f"{seed}: {what}: {event}"
            s = _written_and_read(decision.state, State)
            for effect in decision.effects:
                _written_and_read(effect, _ANY_EFFECT)
            steps.add(s.step)
    # Hardly any game asks a blackjack first, and a shoe seldom runs out.
    assert len(steps) >= len(WAITING) - 5, set(WAITING) - steps


def _written_and_read(value: Struct, kind: Any) -> Any:
    read = msgspec.json.decode(msgspec.json.encode(value), type=kind)
    assert read == value
    return read


@pytest.mark.parametrize("name", GAMES)
def test_both_engines_answer_alike(name: str) -> None:
    compared = compare(name, _COMPARED, seed=f"differential {name}")
    print(compared)
    assert compared.rounds >= _COMPARED
    assert compared.refused > compared.rounds // 4
