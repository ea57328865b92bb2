"""Samples of contestants that run by turns, and the figures computed from them.

    Section("an event there and back", measure, (
        Figure("echo_p99", "echo, 86 bytes each way, p99", "us", "echo p99"),
        Figure("ratio", "event beside echo, p50", "times", "event / echo", at_most=5.0),
    ))

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
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from msgspec import Struct

DIRECTORY: Final = "HOLECARD_BENCH_DISK"
"""Environment variable: the directory to measure in, on the disk that the record will be on."""
_PARTS: Final = {"min": 0.0, "p99": 0.99, "max": 1.0}
"""Positions in the sorted samples, by name."""
_PER_SECOND: Final = {"ms": 1e3, "us": 1e6}
"""Units of figures whose samples are in seconds."""
Contestant: TypeAlias = Callable[[int], object]
"""Runs a number of rounds."""
Clock: TypeAlias = Callable[[], float]
Samples: TypeAlias = dict[str, list[float]]
"""Times in seconds, rates or counts, by what was measured."""


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


def _rate(run: Contestant, rounds: int, clock: Clock) -> float:
    start = clock()
    run(rounds)
    return rounds / max(clock() - start, 1e-9)


def _rounds_of_slice(run: Contestant, pace: Pace, clock: Clock) -> int:
    """Returns the rounds of one slice; finding out warms the contestant up."""
    rounds = 64
    while rounds / (rate := _rate(run, rounds, clock)) < pace.seconds / 4:
        rounds *= 2
    return max(1, round(rate * pace.seconds))


@contextmanager
def scratch() -> Iterator[Path]:
    """Yields a temporary directory, on the disk to measure."""
    parent = os.environ.get(DIRECTORY)
    with tempfile.TemporaryDirectory(prefix="holecard-bench-", dir=parent) as name:
        yield Path(name)


# --- figures ----------------------------------------------------------------------------------


class NotMeasured(Exception):
    """A section cannot be measured on this machine: the reason."""


class Figure(Struct, frozen=True):
    """A row of a section: what is shown, and how it is computed."""

    name: str
    text: str
    """A format string over the samples."""
    unit: str
    how: str | Callable[[Samples], float]
    """A formula of `value_of`, or a function."""
    at_least: float | None = None
    at_most: float | None = None
    note: Callable[[Samples], str] | None = None
    full: bool | None = None
    """Shown only with --full, or only without it; None: always."""

    def line(self, samples: Samples) -> Line:
        value = value_of(self.how, samples) if isinstance(self.how, str) else self.how(samples)
        return Line(
            self.name,
            value * _PER_SECOND.get(self.unit, 1),
            self.unit,
            self.at_least,
            self.at_most,
            self.note(samples) if self.note else "",
            self.text.format_map(samples),
        )


def value_of(formula: str, samples: Samples) -> float:
    """Returns `a`, the median of these samples (`a p50` too); `a p99`, `a min` or `a max`; `a / b`
    or `a / b p99`, two such figures beside each other; or `a : b`, the median of the ratios of
    adjacent slices."""
    match formula.split():
        case [one] | [one, "p50"]:
            return median(samples[one])
        case [one, part]:
            found = sorted(samples[one])
            return found[min(len(found) - 1, int(len(found) * _PARTS[part]))]
        case [one, "/", other, *parts]:
            return value_of(" ".join([one, *parts]), samples) / value_of(
                " ".join([other, *parts]), samples
            )
        case [one, ":", other]:
            return median(x / y for x, y in zip(samples[one], samples[other], strict=True))
    raise ValueError(f"{formula!r} is no formula of a figure")


def p50_and_p99(name: str, text: str) -> tuple[Figure, Figure]:
    """Two rows of times, whose samples have this name."""
    return (
        Figure(f"{name}_p50", f"{text}, p50", "us", name),
        Figure(f"{name}_p99", f"{text}, p99", "us", f"{name} p99"),
    )


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
        shown = (one for one in self.figures if one.full in (None, pace.full))
        return [one.line(samples) for one in shown]
