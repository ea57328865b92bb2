"""The check of the row table finds what it is for; guards exclude each other at every state."""

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from controller.procedure.engine import EVENTS, REFUSALS, LiveTable, Procedure, RowFault
from controller.procedure.engine.dispatch import GO, ROWS, apply, check
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import Event, Go, Hit, Paid, Stand
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refusal, Refused, Row
from controller.procedure.model.state import PASSING, WAITING, State, Step
from controller.procedure.prompts import prompt
from tests.support.procedure.random_events import any_event
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import answers, fresh


def row_of(name: str) -> Row:
    return next(row for row in ROWS if row.id == name)


def row_between(at: Step, to: Step) -> Row:
    return Row(f"to_{to.value}", (at,), Paid, to, "On.")


def changed(name: str, **fields: object) -> tuple[Row, ...]:
    return tuple(replace(row, **fields) if row.id == name else row for row in ROWS)


def for_paid(g: Game, s: State, e: Paid) -> bool:
    return True


def act_for_paid(g: Game, s: State, e: Paid) -> State:
    return s


def facts_for_paid(g: Game, s: State, e: Paid, after: State) -> tuple[Effect, ...]:
    return ()


def for_hit_or_stand(g: Game, s: State, e: Hit | Stand) -> bool:
    return True


def for_paid_or_stand(g: Game, s: State, e: Paid | Stand) -> bool:
    return True


def for_any(g: Game, s: State, e: Event) -> bool:
    return True


def untyped(g: Game, s: State, e) -> bool:  # type: ignore[no-untyped-def]
    return True


def test_the_table_is_sound() -> None:
    check()


def test_every_event_of_the_outside_is_known_and_no_kind_above_it() -> None:
    assert not {Go, Event} & set(EVENTS)
    assert len(set(EVENTS)) == len(EVENTS)
    assert all(not event.__subclasses__() for event in EVENTS)
    assert {row.event for row in ROWS} <= {*EVENTS, Go}
    assert {ref.event for ref in REFUSALS} <= set(EVENTS)


Table = tuple[tuple[Row, ...], tuple[Refusal, ...]]


def without_answer(event: type[Event], step: Step) -> tuple[Refusal, ...]:
    """The refusals, but for those of this event at that step."""
    return tuple(
        replace(ref, at=tuple(each for each in ref.at if each is not step))
        if ref.event is event
        else ref
        for ref in REFUSALS
    )


SAID = without_answer(Paid, Step.TURN)
SOMETIMES = Refusal("sometimes", (Step.TURN,), Paid, "no", for_any)
ISLAND = replace(row_of("hit"), id="island", at=(Step.NATURALS,), to=Step.NATURALS)
PAID_EARLY = Row("paid_early", (Step.TURN,), Paid, Step.TURN, "Paid early.", for_paid)
TURNS_PASS = (Step.TURN, Step.EVALUATE)

MISFITS: dict[str, dict[str, object]] = {
    "guard": {"when": for_paid},
    "guard of two": {"when": for_paid_or_stand},
    "guard of nothing": {"when": untyped},
    "act": {"do": act_for_paid},
    "effects": {"effects": facts_for_paid},
}

# The table of rows, and what its check says of it.
FAULTS: dict[str, tuple[Table, str]] = {
    **{
        f"id {name} twice": (((*ROWS, row_of(name)), REFUSALS), f"row {name} is defined twice")
        for name in ("hit", "deal_card", "floor_rules", "settle")
    },
    "a refusal named like a row": (
        (ROWS, (*REFUSALS, Refusal("hit", (Step.CLOSED,), Hit, "no"))),
        "refusal hit has the id of a row",
    ),
    "a row that says nothing": (
        (changed("hit", text=""), REFUSALS),
        "row hit has no text or no step",
    ),
    "a row that is nowhere": ((changed("hit", at=()), REFUSALS), "row hit has no text or no step"),
    **{
        f"nothing leads to {step.value}": (
            (tuple(row for row in ROWS if row.to is not step), REFUSALS),
            f"no row leads to.*'{step.value}'",
        )
        for step in (Step.WAGERING, Step.NATURALS, Step.REFILL, Step.RESUMING)
    },
    "a step that leads only to itself": (
        (
            (
                *(row for row in ROWS if row.to is not Step.NATURALS or Step.NATURALS in row.at),
                ISLAND,
            ),
            REFUSALS,
        ),
        r"no row leads to.*'naturals'",
    ),
    "no answer at one step": ((ROWS, SAID), "no answer to Paid at turn"),
    "a guarded refusal alone": ((ROWS, (*SAID, SOMETIMES)), "no answer to Paid at turn"),
    "a guarded row alone": (
        (
            (*ROWS, PAID_EARLY),
            tuple(ref for ref in REFUSALS if ref.event is not Paid or Step.TURN not in ref.at),
        ),
        "Paid at turn",
    ),
    **{
        f"{name} of another event": (
            (changed("hit", **fields), REFUSALS),
            r"row hit: .* does not accept Hit",
        )
        for name, fields in MISFITS.items()
    },
    **{
        f"{name} at {len(at)} steps": ((changed(name, at=at), REFUSALS), f"row {name}: Go is the")
        for name, at in (
            ("plays_on", TURNS_PASS[:1]),
            ("plays_on", TURNS_PASS),
            ("hit", TURNS_PASS[1:]),
            ("hit", TURNS_PASS),
        )
    },
}


@pytest.mark.parametrize(("table", "words"), FAULTS.values(), ids=FAULTS)
def test_a_table_that_is_not_sound(table: Table, words: str) -> None:
    with pytest.raises(RowFault, match=words):
        check(*table)


def test_a_refusal_without_a_guard_is_an_answer() -> None:
    check(ROWS, (*SAID, replace(SOMETIMES, when=None)))


def test_every_event_that_nothing_answers_is_named_with_its_step() -> None:
    """Only the way from step to step is left, and it is Go alone that goes it."""
    step_to_step = tuple(
        Row(f"to_{to.value}", (at,), Go, to, "On.") if at in PASSING else row_between(at, to)
        for at, to in zip(Step, (*tuple(Step)[1:], Step.CLOSED), strict=True)
    )
    with pytest.raises(RowFault, match="no answer to") as caught:
        check(step_to_step, ())
    silent = set(str(caught.value).removeprefix("no answer to ").split(", "))
    events = [event.__name__ for event in EVENTS if event is not Paid]
    assert silent == {f"{event} at {step.value}" for event in events for step in WAITING}


@pytest.mark.parametrize("guard", [for_hit_or_stand, for_any])
def test_a_guard_may_take_more_than_the_rows_event(guard: object) -> None:
    check(changed("hit", when=guard), REFUSALS)


def test_a_step_that_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(prompt.SHOWS, Step.TURN)
    with pytest.raises(RowFault, match="turn has no prompt"):
        check()


def test_steps_either_wait_or_pass() -> None:
    assert not [step for step in Step if (step in WAITING) == (step in PASSING)]
    assert set(prompt.SHOWS) == set(WAITING)


_GAMES_EACH: Final = 20
_ROUNDS: Final = 12
_STATES_EACH: Final = 12
"""States of each choice of options on which every kind of event is tried."""


def states_of(game: Game, seed: str) -> tuple[list[State], set[Step]]:
    """Some states of random rounds: those of seldom steps, and a few of the rest."""
    rng = Random(seed)
    seen: dict[Step, list[State]] = {}
    for state, _, _ in answers(game, seed, _ROUNDS):
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
            (row,) = rows
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
    for game, seed in games(name, "guards"):
        procedure, rng = Procedure(game), Random(seed)
        guards = Guards(procedure)
        states, reached = states_of(game, seed)
        stepped |= reached
        for state, kind in product(states, EVENTS):
            _check_answer(procedure, guards, state, any_event(rng, game, state, kind), seed)
    assert stepped >= set(WAITING) - {Step.NATURALS, Step.REFILL}


def _check_answer(procedure: Procedure, guards: Guards, s: State, event: Event, seed: str) -> None:
    before = msgspec.json.encode(s)
    answer = procedure.step(s, event)
    said = f"{seed}: {event} at {s}: {answer}"
    assert answer == procedure.step(s, event), said
    assert msgspec.json.encode(s) == before, said
    if isinstance(answer, Refused):
        assert answer.id, said
        assert answer.why.strip(), said
        assert "{" not in answer.why.replace("{seat}", ""), said
    else:
        assert answer.rows == tuple(guards.follow(s, event)), said
        assert answer.state.step in WAITING, said


@pytest.mark.parametrize("name", GAMES)
def test_one_guard_holds_for_all_that_happens(name: str) -> None:
    """In rounds as they come, where an event fits the state far more often than a made-up one."""
    for game, seed in games(name, "exclusive"):
        guards = Guards(Procedure(game))
        for state, event, answer in answers(game, seed, _ROUNDS, wrong=0.08):
            if isinstance(answer, Decision):
                assert answer.rows == tuple(guards.follow(state, event)), f"{seed}: {event}"
                # The hands of seven seats whose players are gone, and the ends of a stop.
                assert len(answer.rows) <= 12, f"{seed}: {event}: {answer.rows}"


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
        backwards = Procedure(fresh(game))
        for state, event, answer in reversed(answers(game, seed, _ROUNDS)):
            assert backwards.step(state, event) == answer, seed
