"""Contestants measured side by side, in short slices by turns.

A machine that is busy with something else slows whoever is running down. By turns everybody gets
the same share of that, and the median of the slices leaves out what hits only a few of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeAlias

from msgspec import Struct

Contestant: TypeAlias = Callable[[int], None]
"""Does a number of rounds."""
Clock: TypeAlias = Callable[[], float]


class Pace(Struct, frozen=True):
    """How long it is measured."""

    slices: int = 11
    seconds: float = 0.15
    """About the length of one slice."""
    full: bool = False
    """What is long in itself is measured at its whole length: hours."""


class Rates(Struct, frozen=True):
    """Rounds a second, slice by slice, by contestant."""

    by_name: Mapping[str, list[float]]

    def rate(self, name: str) -> float:
        return median(self.by_name[name])

    def ratio(self, name: str, to: str) -> float:
        """How one does beside another, from the slices that lie next to each other."""
        pairs = zip(self.by_name[name], self.by_name[to], strict=True)
        return median([one / other for one, other in pairs])


def contest(
    contestants: Mapping[str, Contestant], pace: Pace, clock: Clock = time.process_time
) -> Rates:
    """Every contestant's rates. By default only the time that this process computes counts."""
    rounds = {name: _sized(run, pace, clock) for name, run in contestants.items()}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(pace.slices):
        for name, run in contestants.items():
            rates[name].append(rounds[name] / timed(run, rounds[name], clock))
    return Rates(rates)


def timed(run: Contestant, rounds: int, clock: Clock) -> float:
    begun = clock()
    run(rounds)
    return max(clock() - begun, 1e-9)


def _sized(run: Contestant, pace: Pace, clock: Clock) -> int:
    """How many rounds make a slice; finding out warms the contestant up."""
    rounds = 64
    while (took := timed(run, rounds, clock)) < pace.seconds / 4:
        rounds *= 2
    return max(1, round(rounds * pace.seconds / took))
