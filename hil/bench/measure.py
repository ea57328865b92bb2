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


class Line(Struct, frozen=True):
    """One figure."""

    name: str
    text: str
    value: float | None
    """None: it could not be measured here; the note says why."""
    unit: str
    at_least: float | None = None
    note: str = ""
    at_most: float | None = None

    @property
    def digits(self) -> int:
        return 2 if self.value is not None and self.value < 100 else 0

    @property
    def missed(self) -> bool:
        if self.value is None:
            return False
        below = self.at_least is not None and self.value < self.at_least
        return below or (self.at_most is not None and self.value > self.at_most)

    @property
    def aim(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"

    @property
    def verdict(self) -> str:
        if not self.aim or self.value is None:
            return self.note
        return f"{self.aim}: {'missed' if self.missed else 'met'} {self.note}"


class Section(Struct, frozen=True):
    """What is measured together."""

    name: str
    summary: str
    measure: Callable[[Pace], list[Line]]


def rate(name: str, text: str, value: float, of: str = "rounds") -> Line:
    return Line(name, text, value, f"{of}/s")


def ratio(name: str, text: str, value: float, at_least: float | None = None) -> Line:
    return Line(name, text, value, "times", at_least)
