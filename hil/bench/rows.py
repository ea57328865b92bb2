"""Rounds through the rows: one seat, every effect made, the record kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from random import Random
from statistics import median
from typing import Final

from controller.games import unburned_game
from controller.procedure.engine import LiveTable, Procedure
from controller.sim.par import BLOCK, BlockPlayer, ParPlan, ordered_tallies, workers
from controller.sim.play import Play, PlaySetup, Stepper, basic, stakes_for
from hil.bench.measure import Contestant, Line, Pace, Section, contest, rate, ratio

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
_SEED: Final = 21


def rounds_of(name: str, table: Callable[[str], Stepper]) -> Contestant:
    """Rounds of the game by its basic strategy, the main wager only, a fresh shuffle each."""
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
    return [rate(name, name, rates.rate(name)) for name in GAMES]


def _transitions(pace: Pace) -> list[Line]:
    lines: list[Line] = []
    for name in GAMES:
        rates = contest(
            {
                "rows": rounds_of(name, through_rows),
                "transitions": rounds_of(name, through_transitions),
            },
            pace,
        )
        lines += [
            rate(name, name, rates.rate("transitions")),
            ratio(
                f"{name}.ratio",
                f"{name}, beside the dictionary",
                rates.ratio("transitions", "rows"),
            ),
        ]
    return lines


ROWS: Final = Section("rows", "rounds a second through the rows, one seat, basic strategy", _rows)
TRANSITIONS: Final = Section(
    "transitions", "the same rows, picked by the live table's machine", _transitions
)


GAME: Final = "classic"
_JOBS: Final = 2
_BLOCKS: Final = range(4)
"""Played at a time in each number of jobs."""
_TURNS_AROUND: Final = 2_000_000
_AT_LEAST: Final = 1.8


def spin(turns: int) -> int:
    """Keeps a core busy with nothing else."""
    total = 0
    for each in range(turns):
        total += each
    return total


def _wall(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


class _Times:
    """Seconds in one process and in two, by turns."""

    def __init__(self) -> None:
        self.one: list[float] = []
        self.two: list[float] = []

    def take(self, one: Callable[[], object], two: Callable[[], object]) -> None:
        self.two.append(_wall(two))
        self.one.append(_wall(one))

    def ratio(self) -> float:
        return median([one / two for one, two in zip(self.one, self.two, strict=True)])


@contextmanager
def _plan_and_pool() -> Iterator[tuple[BlockPlayer, ProcessPoolExecutor]]:
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
        yield BlockPlayer(plan), pool


def _measure(pace: Pace) -> list[Line]:
    name = f"--jobs {_JOBS} beside --jobs 1"
    if len(os.sched_getaffinity(0)) < _JOBS:
        return [Line("ratio", name, None, "", note="there is but one core here")]
    rounds, idle = _Times(), _Times()
    with _plan_and_pool() as (player, pool):
        list(ordered_tallies(pool, _BLOCKS, _JOBS))  # warms up
        for _ in range(max(2, pace.slices // 2)):
            rounds.take(
                lambda: [player.play(block) for block in _BLOCKS],
                lambda: list(ordered_tallies(pool, _BLOCKS, _JOBS)),
            )
            idle.take(
                lambda: [spin(_TURNS_AROUND) for _ in range(_JOBS)],
                lambda: list(pool.map(spin, [_TURNS_AROUND] * _JOBS)),
            )
    played = len(_BLOCKS) * BLOCK
    return [
        rate("one", f"{GAME} with its figures, --jobs 1", played / median(rounds.one)),
        rate("two", f"{GAME} with its figures, --jobs 2", played / median(rounds.two)),
        ratio("machine", "empty loops: what the machine gives two now", idle.ratio()),
        ratio("ratio", name, rounds.ratio(), _AT_LEAST),
    ]


JOBS: Final = Section("jobs", "two processes beside one, by the wall's clock", _measure)
