"""Contestants measured side by side, in short slices by turns.

Another load of the machine slows the contestant that runs at that time. By turns every contestant
has the same share of it, and medians leave out what affects only a few slices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, TypeAlias

from msgspec import Struct

DIRECTORY: Final = "HOLECARD_BENCH_DISK"
"""Environment variable: the directory to measure in, on the disk that the record will be on."""
Contestant: TypeAlias = Callable[[int], object]
"""Runs a number of rounds."""
Clock: TypeAlias = Callable[[], float]


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


class Samples(Struct, frozen=True):
    """Rates or seconds of each contestant, slice by slice."""

    by_name: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        return median(self.by_name[name])

    def quantile(self, name: str, part: float) -> float:
        return quantile(self.by_name[name], part)

    def ratio(self, name: str, to: str) -> float:
        """Returns the median of the ratios of adjacent slices."""
        pairs = zip(self.by_name[name], self.by_name[to], strict=True)
        return median([one / other for one, other in pairs])


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def contest(
    contestants: Mapping[str, Contestant], pace: Pace, clock: Clock = time.process_time
) -> Samples:
    """Returns rounds a second. By default only the CPU time of this process counts."""
    rounds = {name: _sized(run, pace, clock) for name, run in contestants.items()}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(pace.slices):
        for name, run in contestants.items():
            rates[name].append(rounds[name] / _timed(run, rounds[name], clock))
    return Samples(rates)


def by_turns(contestants: Mapping[str, Callable[[], object]], turns: int) -> Samples:
    """Returns the seconds of each call."""
    took: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            took[name].append(seconds(run))
    return Samples(took)


def times(run: Callable[[], object], count: int) -> list[float]:
    """Returns the seconds of each of `count` calls."""
    return [seconds(run) for _ in range(count)]


def seconds(run: Callable[[], object]) -> float:
    """Returns the wall time of a call."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def _timed(run: Contestant, rounds: int, clock: Clock) -> float:
    begun = clock()
    run(rounds)
    return max(clock() - begun, 1e-9)


def _sized(run: Contestant, pace: Pace, clock: Clock) -> int:
    """Returns the rounds of one slice; finding out warms the contestant up."""
    rounds = 64
    while (took := _timed(run, rounds, clock)) < pace.seconds / 4:
        rounds *= 2
    return max(1, round(rounds * pace.seconds / took))


@contextmanager
def scratch() -> Iterator[Path]:
    """Yields a temporary directory, on the disk to measure."""
    parent = os.environ.get(DIRECTORY)
    with tempfile.TemporaryDirectory(prefix="holecard-bench-", dir=parent) as name:
        yield Path(name)


@contextmanager
def child_process(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a module as a child process with pipes; it is killed at the end."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def request(process: subprocess.Popen[str], line: str = "") -> str:
    """Write a line to a child process and read its answer. Raises RuntimeError if it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    if not (answer := process.stdout.readline()):
        raise RuntimeError(f"a child process of the bench has ended: {process.args!r}")
    return answer


# --- results ----------------------------------------------------------------------------------


class Line(Struct, frozen=True):
    """One figure."""

    name: str
    text: str
    value: float | None
    """None: it could not be measured here; the note has the reason."""
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
    """Figures that are measured together."""

    name: str
    summary: str
    measure: Callable[[Pace], list[Line]]


def rate(name: str, text: str, value: float, of: str = "rounds") -> Line:
    return Line(name, text, value, f"{of}/s")


def ratio(
    name: str,
    text: str,
    value: float,
    at_least: float | None = None,
    *,
    at_most: float | None = None,
) -> Line:
    return Line(name, text, value, "times", at_least, at_most=at_most)
