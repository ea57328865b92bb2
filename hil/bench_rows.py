"""Rounds through the rows: one seat, every effect made, the record kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from random import Random
from statistics import median
from typing import Final

from controller.procedure.engine import Procedure
from controller.procedure.live import LiveTable
from controller.sim.games import unburned_game
from controller.sim.par import BLOCK, Plan, Player, handed_out, workers
from controller.sim.play import Play, Setup, Stepper
from controller.sim.stakes import stakes_for
from controller.sim.strategy import basic
from hil.bench_lines import Line, Section, rate, ratio
from hil.contest import Contestant, Pace, contest

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
_SEED: Final = 21
_JOBS: Final = 2
_BLOCKS: Final = 4
"""Played at a time in each number of jobs."""


def rounds_of(name: str, table: Callable[[str], Stepper]) -> Contestant:
    """Rounds of the game by its basic strategy, the main wager only, a fresh shuffle each."""
    stepper = table(name)
    setup = Setup(1, stakes_for(stepper.game, side=False))
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


def _jobs(pace: Pace) -> list[Line]:
    cores = len(os.sched_getaffinity(0))
    if cores < _JOBS:
        return [Line("ratio", "--jobs 2 beside --jobs 1", None, "", note="this machine has 1 core")]
    name = "classic"
    game = unburned_game(name, {}, "bench")
    blocks = range(_BLOCKS)
    plan = Plan(name, {}, game.options, basic(name), 1, len(blocks) * BLOCK, _SEED, False, False)
    alone = Player(plan)
    ones: list[float] = []
    twos: list[float] = []
    with workers(plan, _JOBS) as pool:
        for turn in range(max(2, pace.slices // 2) + 1):
            begun = time.perf_counter()
            for _ in handed_out(pool, blocks, _JOBS):
                pass
            between = time.perf_counter()
            for block in blocks:
                alone.play(block)
            if turn:  # the first turn warms up
                twos.append(between - begun)
                ones.append(time.perf_counter() - between)
    rounds = len(blocks) * BLOCK
    return [
        rate("one", "classic with figures, --jobs 1", rounds / median(ones)),
        rate("two", "classic with figures, --jobs 2", rounds / median(twos)),
        ratio(
            "ratio",
            "--jobs 2 beside --jobs 1",
            median([one / two for one, two in zip(ones, twos, strict=True)]),
            1.8,
        ),
    ]


ROWS: Final = Section("rows", "rounds a second through the rows, one seat, basic strategy", _rows)
TRANSITIONS: Final = Section(
    "transitions", "the same rows, picked by the live table's machine", _transitions
)
JOBS: Final = Section("jobs", "two processes beside one, by the wall's clock", _jobs)
