"""Guards exclude each other, every event has its answer, and an answer depends on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec
import pytest

from controller.procedure.engine import EVENTS, LiveTable, Procedure
from controller.procedure.engine.dispatch import GO, apply
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused, Row
from controller.procedure.model.state import PASSING, WAITING, State, Step
from tests.support.procedure.random_events import any_event
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import RandomTable, Recorder, fresh

_GAMES_EACH: Final = 20
_ROUNDS: Final = 12
_STATES_EACH: Final = 12
"""States of each choice of options on which every kind of event is tried."""


def states_of(game: Game, seed: str) -> tuple[list[State], set[Step]]:
    """Some states of random rounds: those of seldom steps, and a few of the rest."""
    rng = Random(seed)
    seen: dict[Step, list[State]] = {}
    recorder = Recorder()
    RandomTable(Procedure(game), seed, watch=recorder).play(_ROUNDS)
    for state, _, _ in recorder.answers:
        seen.setdefault(state.step, []).append(state)
    steps = sorted(seen, key=lambda step: len(seen[step]))
    return [rng.choice(seen[step]) for step in steps[:_STATES_EACH]], set(steps)


class Guards:
    """Asks every row of a game, not only the first that fits."""

    def __init__(self, procedure: Procedure) -> None:
        self.game = procedure.game
        self._rows: dict[tuple[Step, type[Event]], list[Row]] = {}
        for row in procedure.rows:
            for step in row.at:
                self._rows.setdefault((step, row.event), []).append(row)

    def fitting(self, s: State, event: Event) -> list[Row]:
        """The rows whose guard holds."""
        rows = self._rows.get((s.step, type(event)), [])
        return [row for row in rows if row.when is None or row.when(self.game, s, event)]

    def follow(self, s: State, event: Event) -> Iterator[str]:
        """The rows up to the next step that waits; each the only one whose guard holds."""
        first = True
        while first or s.step in PASSING:
            rows = self.fitting(s, event)
            assert len(rows) == 1, f"{[row.id for row in rows]} at {s}"
            row = rows[0]
            s, _ = apply(self.game, row.do, row.to, row.effects, s, event)
            yield row.id
            event, first = GO, False


def games(name: str, kind: str) -> Iterator[tuple[Game, str]]:
    for number in range(_GAMES_EACH):
        seed = f"{kind} {name} {number}"
        game, what = some_game(Random(seed), name)
        yield game, f"{seed}: {what}"


@pytest.mark.parametrize("name", GAMES)
def test_every_event_has_one_answer_at_every_state(name: str) -> None:
    stepped: set[Step] = set()
    answers = taken = 0
    for game, seed in games(name, "guards"):
        procedure = Procedure(game)
        guards = Guards(procedure)
        rng = Random(seed)
        states, reached = states_of(game, seed)
        stepped |= reached
        for state in states:
            for kind in EVENTS:
                event = any_event(rng, game, state, kind)
                taken += _answered(procedure, guards, state, event, seed)
                answers += 1
    print(f"{name}: {answers} answers, {taken} of them decisions, at {len(stepped)} steps")
    assert stepped >= set(WAITING) - {Step.NATURALS, Step.REFILL}


def _answered(procedure: Procedure, guards: Guards, s: State, event: Event, seed: str) -> bool:
    before = msgspec.json.encode(s)
    answer = procedure.step(s, event)
    said = f"{seed}: {event} at {s}: {answer}"
    assert answer == procedure.step(s, event), said
    assert msgspec.json.encode(s) == before, said
    if isinstance(answer, Refused):
        assert answer.id, said
        assert answer.why.strip(), said
        assert "{" not in answer.why.replace("{seat}", ""), said
        return False
    assert answer.rows == tuple(guards.follow(s, event)), said
    assert answer.state.step in WAITING, said
    return True


@pytest.mark.parametrize("name", GAMES)
def test_one_guard_holds_for_all_that_happens(name: str) -> None:
    """In rounds as they come, where an event fits the state far more often than a made-up one."""
    taken = 0
    for game, seed in games(name, "exclusive"):
        procedure, recorder = Procedure(game), Recorder()
        guards = Guards(procedure)
        RandomTable(procedure, seed, wrong=0.08, watch=recorder).play(_ROUNDS)
        for state, event, answer in recorder.answers:
            if isinstance(answer, Decision):
                assert answer.rows == tuple(guards.follow(state, event)), f"{seed}: {event}"
                # The hands of seven seats whose players are gone, and the ends of a stop.
                assert len(answer.rows) <= 12, f"{seed}: {event}: {answer.rows}"
                taken += 1
    print(f"{name}: {taken} decisions")


def test_nobody_outside_makes_the_procedure_go_on() -> None:
    for name in GAMES:
        game, seed = next(games(name, "go"))
        procedure, live = Procedure(game), LiveTable(game)
        for state in states_of(game, seed)[0]:
            answer = procedure.step(state, GO)
            assert isinstance(answer, Refused), seed
            assert answer == live.step(state, GO), seed


@pytest.mark.parametrize("name", GAMES)
def test_a_game_that_was_played_answers_like_a_new_one(name: str) -> None:
    for game, seed in games(name, "caches"):
        recorder = Recorder()
        RandomTable(Procedure(game), seed, watch=recorder).play(_ROUNDS)
        backwards = Procedure(fresh(game))
        for state, event, answer in reversed(recorder.answers):
            assert backwards.step(state, event) == answer, seed
