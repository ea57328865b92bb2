"""Samples of contestants that run by turns, and the figures computed from them.

Another load of the machine slows the contestant that runs at that time. In short slices by turns
every contestant has the same share of it, and medians leave out what affects only a few slices.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from msgspec import Struct

DIRECTORY: Final = "HOLECARD_BENCH_DISK"
"""Environment variable: the directory to measure in, on the disk that the record will be on."""
PARTS: Final = {"p50": 0.5, "p99": 0.99}
"""The quantiles that are printed, by name."""
_PER_SECOND: Final = {"ms": 1e3, "us": 1e6}
"""Units of figures whose samples are in seconds."""
Contestant: TypeAlias = Callable[[int], object]
"""Runs a number of rounds."""
Clock: TypeAlias = Callable[[], float]
Samples: TypeAlias = dict[str, list[float]]
"""Times in seconds, rates or counts, by what was measured."""
Value: TypeAlias = Callable[[Samples], float]
"""Computes a figure."""


class Pace(Struct, frozen=True):
    """How long to measure."""

    slices: int = 11
    seconds: float = 0.15
    """Approximate length of one slice."""
    full: bool = False
    """Measure long records and tables at their full length, which takes hours."""

    @property
    def share(self) -> float:
        """This pace's length as a part of the usual one, at most 1."""
        return min(1.0, self.slices * self.seconds / (Pace().slices * Pace().seconds))

    def count(self, usual: int, *, full: int | None = None, minimum: int = 1) -> int:
        """Returns how many of something to measure: its usual or full number, or less."""
        if self.full and full is not None:
            return full
        return max(minimum, round(usual * self.share))


# --- samples ----------------------------------------------------------------------------------


def contest(
    contestants: Mapping[str, Contestant], pace: Pace, clock: Clock = time.process_time
) -> Samples:
    """Returns rounds a second. By default only the CPU time of this process counts."""
    slices = {
        name: partial(_rate, run, _rounds_of_slice(run, pace, clock), clock)
        for name, run in contestants.items()
    }
    return by_turns(slices, pace.slices)


def by_turns(contestants: Mapping[str, Callable[[], float]], turns: int) -> Samples:
    """Returns the results of each contestant, turn by turn."""
    results: Samples = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            results[name].append(run())
    return results


def seconds(run: Callable[[], object]) -> float:
    """Returns the wall time of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _seconds_of(run: Contestant, rounds: int, clock: Clock) -> float:
    start = clock()
    run(rounds)
    return max(clock() - start, 1e-9)


def _rate(run: Contestant, rounds: int, clock: Clock) -> float:
    return rounds / _seconds_of(run, rounds, clock)


def _rounds_of_slice(run: Contestant, pace: Pace, clock: Clock) -> int:
    """Returns the rounds of one slice; finding out warms the contestant up."""
    rounds = 64
    while (took := _seconds_of(run, rounds, clock)) < pace.seconds / 4:
        rounds *= 2
    return max(1, round(rounds * pace.seconds / took))


@contextmanager
def scratch() -> Iterator[Path]:
    """Yields a temporary directory, on the disk to measure."""
    parent = os.environ.get(DIRECTORY)
    with tempfile.TemporaryDirectory(prefix="holecard-bench-", dir=parent) as name:
        yield Path(name)


@contextmanager
def child_process(work: Callable[..., object], *arguments: object) -> Iterator[Connection]:
    """Run a function in a new process, with one end of a pipe; it is killed at the end. Yields the
    other end, which raises EOFError if the process has ended."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()
        ours.close()


# --- figures ----------------------------------------------------------------------------------


class NotMeasured(Exception):
    """A section cannot be measured on this machine: the reason."""


class Figure(Struct, frozen=True):
    """A row of a section: how a figure is computed and shown."""

    name: str
    text: str
    """A format string over the samples."""
    value: Value
    unit: str = "times"
    at_least: float | None = None
    at_most: float | None = None
    note: Callable[[Samples], str] | None = None
    full: bool | None = None
    """Shown only with --full, or only without it; None: always."""


class Line(Struct, frozen=True):
    """One measured figure."""

    name: str
    value: float | None
    """None: it could not be measured here; the note has the reason."""
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    text: str = ""

    @property
    def missed(self) -> bool:
        if self.value is None:
            return False
        below = self.at_least is not None and self.value < self.at_least
        return below or (self.at_most is not None and self.value > self.at_most)


class Section(Struct, frozen=True):
    """Figures that are measured together."""

    summary: str
    measure: Callable[[Pace], Samples]
    """Raises NotMeasured."""
    figures: tuple[Figure, ...]

    def lines(self, pace: Pace) -> list[Line]:
        """Measure; where that is impossible, the ratio with an aim has no value but the reason."""
        try:
            samples = self.measure(pace)
        except NotMeasured as problem:
            aimed = (one for one in self.figures if one.at_least is not None)
            return [Line(one.name, None, "", note=str(problem), text=one.text) for one in aimed]
        return [
            Line(
                figure.name,
                figure.value(samples) * _PER_SECOND.get(figure.unit, 1),
                figure.unit,
                figure.at_least,
                figure.at_most,
                figure.note(samples) if figure.note else "",
                figure.text.format_map(samples),
            )
            for figure in self.figures
            if figure.full in (None, pace.full)
        ]


def quantile(name: str, part: float = 0.5) -> Value:
    """Returns a part of the sorted samples: 0 the minimum, 0.5 the median, 1 the maximum."""

    def value(samples: Samples) -> float:
        found = samples[name]
        if part == PARTS["p50"]:
            return median(found)
        return sorted(found)[min(len(found) - 1, int(len(found) * part))]

    return value


def beside(name: str, to: str, part: float = 0.5) -> Value:
    """Returns the ratio of two quantiles."""
    return lambda samples: quantile(name, part)(samples) / quantile(to, part)(samples)


def turn_ratio(name: str, to: str) -> Value:
    """Returns the median of the ratios of adjacent slices."""
    return lambda samples: median(
        one / other for one, other in zip(samples[name], samples[to], strict=True)
    )


def rate(name: str, text: str, of: str = "rounds") -> Figure:
    """A figure whose samples are rates."""
    return Figure(name, text, quantile(name), f"{of}/s")
