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

from controller.procedure.engine import EVENTS, LiveTable, Procedure
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event
from controller.procedure.model.row import Decision
from controller.procedure.model.state import WAITING, State, Step
from tests.support.procedure.differential import compare
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import RandomTable, Recorder, fresh

_GAMES_EACH: Final = 16
_ROUNDS: Final = 15


def _leaves(kind: type[Any]) -> list[type[Any]]:
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] or [kind]


_ANY_EVENT: Final[Any] = reduce(or_, EVENTS)
_ANY_EFFECT: Final[Any] = reduce(or_, _leaves(Effect))


def _recorded(name: str, number: int) -> tuple[Procedure, list[tuple[Event, Decision]], str]:
    seed = f"recovery {name} {number}"
    game, what = some_game(Random(seed), name)
    recorder = Recorder()
    procedure = Procedure(game)
    RandomTable(procedure, seed, watch=recorder).play(_ROUNDS)
    taken = [(event, said) for _, event, said in recorder.answers if isinstance(said, Decision)]
    return procedure, taken, f"{seed}: {what}"


@pytest.mark.parametrize("name", GAMES)
def test_a_state_shows_the_same_again(name: str) -> None:
    steps: set[Step] = set()
    for number in range(_GAMES_EACH):
        procedure, taken, seed = _recorded(name, number)
        again = Procedure(fresh(procedure.game))
        for event, decision in taken:
            shown = procedure.shows(decision.state)
            assert shown, seed
            assert decision.effects[-len(shown) :] == shown, f"{seed}: {event}"
            assert again.shows(decision.state) == shown, f"{seed}: {event}"
            steps.add(decision.state.step)
    # Hardly any game asks a blackjack first, and a shoe seldom runs out.
    assert len(steps) >= len(WAITING) - 5, set(WAITING) - steps


@pytest.mark.parametrize("name", GAMES)
def test_the_events_alone_give_the_state_back(name: str) -> None:
    for number in range(_GAMES_EACH):
        procedure, taken, seed = _recorded(name, number)
        record = [msgspec.json.encode(event) for event, _ in taken]
        for engine in (Procedure(fresh(procedure.game)), LiveTable(fresh(procedure.game))):
            s = State()
            for line, (event, decision) in zip(record, taken, strict=True):
                read = msgspec.json.decode(line, type=_ANY_EVENT)
                assert read == event, seed
                answer = engine.step(s, read)
                assert answer == decision, f"{seed}: {event}"
                assert isinstance(answer, Decision)
                s = answer.state


@pytest.mark.parametrize("name", GAMES)
def test_states_and_effects_survive_being_written_down(name: str) -> None:
    kinds: set[type[Effect]] = set()
    for number in range(_GAMES_EACH):
        _, taken, seed = _recorded(name, number)
        for event, decision in taken:
            state = msgspec.json.encode(decision.state)
            assert msgspec.json.decode(state, type=State) == decision.state, f"{seed}: {event}"
            for effect in decision.effects:
                written = msgspec.json.encode(effect)
                assert msgspec.json.decode(written, type=_ANY_EFFECT) == effect, seed
                kinds.add(type(effect))
    print(f"{name}: {len(kinds)} kinds of effects of {len(_leaves(Effect))}")


_COMPARED = 1_500
"""Of each game."""


@pytest.mark.parametrize("name", GAMES)
def test_both_engines_answer_alike(name: str) -> None:
    compared = compare(name, _COMPARED, seed=f"differential {name}")
    print(compared)
    assert compared.rounds >= _COMPARED
    assert compared.refused > compared.rounds // 4
