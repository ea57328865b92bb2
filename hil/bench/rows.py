"""Rounds through the rows with one seat, and the same rounds in two processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Final

from controller.games import unburned_game
from controller.procedure.engine import LiveTable, Procedure
from controller.sim.par import BLOCK, BlockPlayer, ParPlan, ordered_tallies, workers
from controller.sim.play import Play, PlaySetup, Stepper, basic, stakes_for
from hil.bench.measure import Contestant, Line, Pace, Section, by_turns, contest, rate, ratio

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
_SEED: Final = 21


def rounds_of(name: str, table: Callable[[str], Stepper]) -> Contestant:
    """Returns a contestant that plays rounds by basic strategy, each with a new shuffle."""
    stepper = table(name)
    setup = PlaySetup(1, stakes_for(stepper.game, side=False))
    play = Play(stepper, basic(name), setup, Random(_SEED).random)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            play.round()

    return run


def through_rows(name: str) -> Procedure:
    return Procedure(unburned_game(name, {}, "bench"))


def through_transitions(name: str) -> LiveTable:
    return LiveTable(unburned_game(name, {}, "bench"))


def _rows(pace: Pace) -> list[Line]:
    rates = contest({name: rounds_of(name, through_rows) for name in GAMES}, pace)
    return [rate(name, name, rates.median(name)) for name in GAMES]


def _transitions(pace: Pace) -> list[Line]:
    lines: list[Line] = []
    for name in GAMES:
        tables: dict[str, Callable[[str], Stepper]] = {
            "rows": through_rows,
            "transitions": through_transitions,
        }
        rates = contest({key: rounds_of(name, table) for key, table in tables.items()}, pace)
        beside = rates.ratio("transitions", "rows")
        lines += [
            rate(name, name, rates.median("transitions")),
            ratio(f"{name}.ratio", f"{name}, beside the dictionary", beside),
        ]
    return lines


ROWS: Final = Section("rows", "rounds a second through the rows, one seat, basic strategy", _rows)
TRANSITIONS: Final = Section(
    "transitions", "the same rows, picked by the live table's machine", _transitions
)


GAME: Final = "classic"
_JOBS: Final = 2
_BLOCKS: Final = range(4)
"""Played in each slice."""
_TURNS_AROUND: Final = 2_000_000
_AT_LEAST: Final = 1.8


def spin(turns: int) -> int:
    """Compute on one core, without memory or I/O."""
    total = 0
    for each in range(turns):
        total += each
    return total


def _measure(pace: Pace) -> list[Line]:
    name = f"--jobs {_JOBS} beside --jobs 1"
    if len(os.sched_getaffinity(0)) < _JOBS:
        return [Line("ratio", name, None, "", note="there is but one core here")]
    game = unburned_game(GAME, {}, "bench")
    plan = ParPlan(
        game=GAME,
        settings={},
        options=game.options,
        strategy=basic(GAME),
        seats=1,
        rounds=len(_BLOCKS) * BLOCK,
        seed=_SEED,
        cut=False,
        side=False,
    )
    with workers(plan, _JOBS) as pool:
        player = BlockPlayer(plan)
        list(ordered_tallies(pool, _BLOCKS, _JOBS))  # warms up
        took = by_turns(
            {
                "two": lambda: list(ordered_tallies(pool, _BLOCKS, _JOBS)),
                "one": lambda: [player.play(block) for block in _BLOCKS],
                "idle_two": lambda: list(pool.map(spin, [_TURNS_AROUND] * _JOBS)),
                "idle_one": lambda: [spin(_TURNS_AROUND) for _ in range(_JOBS)],
            },
            max(2, pace.slices // 2),
        )
    played = len(_BLOCKS) * BLOCK
    machine = took.ratio("idle_one", "idle_two")
    return [
        rate("one", f"{GAME} with its figures, --jobs 1", played / took.median("one")),
        rate("two", f"{GAME} with its figures, --jobs 2", played / took.median("two")),
        ratio("machine", "empty loops: what the machine gives two now", machine),
        ratio("ratio", name, took.ratio("one", "two"), _AT_LEAST),
    ]


JOBS: Final = Section("jobs", "two processes beside one, by the wall's clock", _measure)
