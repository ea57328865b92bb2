"""Rounds through the rows: one seat, every effect made, the record kept."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from controller.games import unburned_game
from controller.procedure.engine.dispatch import Procedure
from controller.procedure.engine.state_machine import LiveTable
from controller.sim.play.rounds import Play, Setup, Stepper
from controller.sim.play.strategy import basic
from controller.sim.play.wagers import stakes_for
from hil.bench.measure import Contestant, Pace, contest
from hil.bench.measure_bench_lines import Line, Section, rate, ratio

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
_SEED: Final = 21


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


ROWS: Final = Section("rows", "rounds a second through the rows, one seat, basic strategy", _rows)
TRANSITIONS: Final = Section(
    "transitions", "the same rows, picked by the live table's machine", _transitions
)
