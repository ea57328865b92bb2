"""Rounds in two processes beside one, by the wall's clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Final

from controller.games import unburned_game
from controller.sim.par.simulation import BLOCK, Plan, Player, handed_out, workers
from controller.sim.play.strategy import basic
from hil.bench.measure import Pace
from hil.bench.measure_bench_lines import Line, Section, rate, ratio

GAME: Final = "classic"
_SEED: Final = 21
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
def _plan_and_pool() -> Iterator[tuple[Player, ProcessPoolExecutor]]:
    game = unburned_game(GAME, {}, "bench")
    plan = Plan(
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
        yield Player(plan), pool


def _measure(pace: Pace) -> list[Line]:
    name = f"--jobs {_JOBS} beside --jobs 1"
    if len(os.sched_getaffinity(0)) < _JOBS:
        return [Line("ratio", name, None, "", note="there is but one core here")]
    rounds, idle = _Times(), _Times()
    with _plan_and_pool() as (player, pool):
        list(handed_out(pool, _BLOCKS, _JOBS))  # warms up
        for _ in range(max(2, pace.slices // 2)):
            rounds.take(
                lambda: [player.play(block) for block in _BLOCKS],
                lambda: list(handed_out(pool, _BLOCKS, _JOBS)),
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
