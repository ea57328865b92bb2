"""A whole table: `holecard serve` with its record on the disk, and a shoe, a shuffler and seven
stations behind ptys and USB.

Beside each round's cards, in turns with them: a page overwritten and synced in the same directory,
and a bare pty with another process behind it. A start with a long record is measured in turns with
one with a short record, of which the last segment is about as full: that one is played again.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.segments import numbers
from controller.audit.read.reader import read_segment
from controller.audit.simulate import record_par
from controller.games import game_of_table
from controller.table.running import load_keys
from hil.bench.measure import Line, Pace, Section
from hil.bench.record import RawDisk, at, scratch
from hil.bench.table_clients import GAP_MS, SEATS, PlayedTable, played, watchers
from hil.table.robots import Api
from hil.table.setup import FEW, Stage, example, staged

ECHO_BYTES: Final = 100
"""About the bytes of a card's record on the wire; as many come back."""
_READ: Final = 4096


class PtyEcho:
    """Our end of it."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._data = bytes(range(1, ECHO_BYTES + 1))

    def once(self) -> None:
        """There and back, all bytes."""
        os.write(self._master, self._data)
        left = ECHO_BYTES
        while left:
            left -= len(os.read(self._master, left))

    def timed(self, count: int) -> list[float]:
        """Seconds of each."""
        times = []
        for _ in range(count):
            begun = time.monotonic_ns()
            self.once()
            times.append((time.monotonic_ns() - begun) / 1e9)
        return times


@contextmanager
def echo() -> Iterator[PtyEcho]:
    """Another process stands behind it meanwhile."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        command = [sys.executable, "-m", "hil.bench.table", os.ttyname(slave)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            ours = PtyEcho(master)
            ours.once()  # it has begun to listen
            yield ours
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(slave)
        os.close(master)


def main(terminal: str) -> None:
    port = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    while data := os.read(port, _READ):
        os.write(port, data)


if __name__ == "__main__":
    main(*sys.argv[1:])


TABLE_FILE: Final = "mega-1"
CARDS: Final = 2_000
"""Timed at the usual pace."""
ROUNDS: Final = 1_000
FULL_ROUNDS: Final = (1_000, 20_000)
IDLE: Final = 10.0
"""Seconds."""
RECORDS: Final = 200_000
FULL_RECORDS: Final = 10_000_000
STARTS: Final = 3
WATCHERS: Final = 200
"""Browsers that look on."""
_RECORDS_A_ROUND: Final = 50
"""At least, of simulated rounds at seven seats."""
_OPENINGS: Final = 2
"""So often the shoe was filled since the record was made."""
_USUAL: Final = Pace().slices * Pace().seconds
_LOOK: Final = 0.02
_PATIENCE: Final = 60.0
_BOTH_P50: Final = 2.0
_BOTH_P99: Final = 3.0
_WATCHED_P50: Final = 1.5
_WATCHED_P99: Final = 2.0
_FLAT: Final = 0.5
"""KiB a round, over rounds enough to tell."""
_KIB: Final = 1024
_MICRO: Final = 1e6


class TableSizes(Struct, frozen=True):
    """How much of each."""

    cards: int
    rounds: tuple[int, ...]
    """After which the memory is looked at, beside the first one."""
    idle: float
    records: int
    starts: int
    watchers: int


def sizes(pace: Pace) -> TableSizes:
    if pace.full:
        return TableSizes(CARDS, FULL_ROUNDS, IDLE, FULL_RECORDS, STARTS, WATCHERS)
    share = min(1.0, pace.slices * pace.seconds / _USUAL)
    return TableSizes(
        max(SEATS, round(CARDS * share)),
        (max(4, round(ROUNDS * share)),),
        max(0.2, IDLE * share),
        max(1_000, round(RECORDS * share)),
        max(1, round(STARTS * share)),
        max(4, round(WATCHERS * share)),
    )


# --- a table that deals -----------------------------------------------------------------------


class CardTimes(Struct):
    """Seconds."""

    cards: list[float] = []
    raw: list[float] = []
    echo: list[float] = []


class DaemonMemory(Struct, frozen=True):
    """Of the daemon, after so many rounds: KiB."""

    rounds: int
    resident: int
    proportional: int | None
    """Its share of pages that others have too; None where the system does not say."""


def memory(pid: int, rounds: int) -> DaemonMemory:
    found = _fields(Path(f"/proc/{pid}/status"))
    try:
        proportional = _fields(Path(f"/proc/{pid}/smaps_rollup")).get("Pss")
    except OSError:  # not every kernel has it
        proportional = None
    return DaemonMemory(rounds, found["VmRSS"], proportional)


def _fields(file: Path) -> dict[str, int]:
    """The sizes that stand there."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {one[0].rstrip(":"): int(one[1]) for one in lines if one[2:] == ["kB"]}


def processor(pid: int) -> float:
    """Seconds that it has computed, for itself and in the kernel."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED: see clock_getcpuclockid(3)


async def _timed(table: PlayedTable, raw: RawDisk, bare: PtyEcho, cards: int) -> CardTimes:
    times, found = CardTimes(), table.cards.times
    while len(found) < cards:
        before = len(found)
        await table.play(rounds=1)
        turns = len(found) - before
        times.echo += bare.timed(turns)
        for _ in range(turns):
            begun = time.monotonic_ns()
            raw.once()
            times.raw.append((time.monotonic_ns() - begun) / 1e9)
    if table.cards.drawn != len(found):
        raise AssertionError(f"{table.cards.drawn} cards came, {len(found)} were shown")
    times.cards = found[:]  # those of other rounds are not timed in turns with anything
    return times


async def _dealt(folder: Path, wanted: TableSizes) -> list[Line]:
    async with staged(folder / "table", gap_ms=GAP_MS) as stage:
        await stage.serve(replace(example(TABLE_FILE), screens=0))
        pid = stage.daemon.pid
        raw = RawDisk(folder / "raw")
        try:
            async with played(stage) as table:
                await table.play(rounds=1)
                table.cards.forget()  # the first round finds everything cold
                looks = [memory(pid, table.round)]
                with echo() as bare:
                    times = await _timed(table, raw, bare, wanted.cards)
                looks.append(memory(pid, table.round))
                table.players.seats = 1
                played_from, begun = table.round, time.perf_counter()
                for rounds in wanted.rounds:
                    await table.play(rounds=max(0, rounds - table.round))
                    looks.append(memory(pid, table.round))
                took = time.perf_counter() - begun
                before = processor(pid)
                await asyncio.sleep(wanted.idle)
                idle = 100 * (processor(pid) - before) / wanted.idle
                rate = (table.round - played_from) / took
                table.players.seats = SEATS
                watched = await _watched(table, stage, wanted)
        finally:
            os.close(raw.fd)
        await stage.daemon.stop()
    return [
        *_card_lines(times),
        *watched,
        *_memory_lines(looks, whole=wanted.rounds == FULL_ROUNDS),
        Line("round_rate", "rounds of one seat", rate, "rounds/s"),
        Line("idle", "daemon's CPU, table idle, nine devices", idle, "% of core"),
    ]


async def _watched(table: PlayedTable, stage: Stage, wanted: TableSizes) -> list[Line]:
    """Cards before, while and after browsers look on, of which one never reads."""
    cards = wanted.cards // 4
    where = (await stage.daemon.screens() or "").rstrip("/")
    alone = await _some(table, max(1, cards // 2))
    with ExitStack() as looking:
        # Not in this loop's thread: they are told of the table from the first moment.
        await asyncio.to_thread(looking.enter_context, watchers(where, wanted.watchers))
        watched = await _some(table, max(1, cards))
    alone += await _some(table, max(1, cards // 2))
    text = f"card -> prompt, {wanted.watchers} browsers beside none"
    return [
        Line(
            f"watched_{label}",
            f"{text}, {label}",
            at(watched, part) / at(alone, part),
            "times",
            at_most=most,
        )
        for label, part, most in (("p50", 0.5, _WATCHED_P50), ("p99", 0.99, _WATCHED_P99))
    ]


async def _some(table: PlayedTable, cards: int) -> list[float]:
    """Seconds of so many cards, in whole rounds."""
    table.cards.forget()
    while len(table.cards.times) < cards:
        await table.play(rounds=1)
    return table.cards.times[:]


def _card_lines(times: CardTimes) -> Iterator[Line]:
    named = (
        ("raw", "4 KiB overwritten and fdatasync", times.raw),
        ("echo", "bare pty, there and back", times.echo),
        ("card", "card's last byte -> prompt's first", times.cards),
    )
    yield Line("cards", f"cards dealt, {SEATS} seats", len(times.cards), "cards")
    for name, text, found in named:
        for label, part in (("p50", 0.5), ("p99", 0.99)):
            yield Line(f"{name}_{label}", f"{text}, {label}", at(found, part) * _MICRO, "us")
    for label, part, most in (("p50", 0.5, _BOTH_P50), ("p99", 0.99, _BOTH_P99)):
        both = at(times.raw, part) + at(times.echo, part)
        beside = at(times.cards, part) / both
        text = f"card beside page and echo together, {label}"
        yield Line(f"card_ratio_{label}", text, beside, "times", at_most=most)


def _memory_lines(looks: list[DaemonMemory], *, whole: bool) -> Iterator[Line]:
    """`whole`: the rounds are enough to tell what it grows by."""
    for number, look in enumerate(looks):
        text = f"daemon's memory after {look.rounds:,} rounds"
        share = look.proportional
        note = "" if share is None else f"proportional {share / _KIB:.1f} MiB"
        yield Line(f"memory_{number}", text, look.resident / _KIB, "MiB", note=note)
    first, last = looks[1], looks[-1]
    if whole:
        first = looks[2]
    more = max(1, last.rounds - first.rounds)
    growth = (last.resident - first.resident) / more
    text = f"  growth from {first.rounds:,} to {last.rounds:,}, a round"
    yield Line("memory_growth", text, growth, "KiB", at_most=_FLAT if whole else None)


# --- starts -----------------------------------------------------------------------------------


async def _started(stage: Stage) -> float:
    """Seconds from the child's beginning to READY=1; it is stopped when its devices are ready."""
    begun = time.perf_counter()
    await stage.daemon.start()
    took = time.perf_counter() - begun
    async with Api(stage.control) as api, asyncio.timeout(_PATIENCE):
        while not (await api.health()).ready:
            await asyncio.sleep(_LOOK)
    await stage.daemon.stop()
    return took


async def _furnished(stage: Stage) -> None:
    """A table that has opened and closed, as it will have been before any start."""
    await stage.daemon.start()
    async with played(stage) as table:
        table.players.seats = 1
        for _ in range(_OPENINGS):
            await table.play(rounds=1)
            await table.close()
    await stage.daemon.stop()


def _lengthened(stage: Stage, rounds: int) -> int:
    """Rounds without a table go before; how many records they have."""
    keys = load_keys(stage.house.keys)
    game = game_of_table(stage.table)
    return record_par(
        stage.house.record, game, rounds, lambda _: keys, seats=SEATS, table=stage.name
    )


def _with_its_last(record: Path) -> float:
    """What part of a record one whole segment is, and one as full as its last: that much is read
    at a start, however long it is."""
    every = numbers(record)
    last = read_segment(record, every[-1]).end
    return min(1.0, (ECHO_BYTES + last) / (ECHO_BYTES * (len(every) - 1) + last))


async def _starts(folder: Path, wanted: TableSizes) -> list[Line]:
    times: dict[str, list[float]] = {"short": [], "long": []}
    async with (
        staged(folder / "short", FEW, gap_ms=GAP_MS) as short,
        staged(folder / "long", FEW, gap_ms=GAP_MS) as long,
    ):
        for stage in (short, long):
            stage.write(example(TABLE_FILE))
        rounds = wanted.records // _RECORDS_A_ROUND
        records = _lengthened(long, rounds)
        fewer = _lengthened(short, round(rounds * _with_its_last(long.house.record)))
        for stage in (short, long):
            await _furnished(stage)
        for _ in range(wanted.starts):
            times["short"].append(await _started(short))
            times["long"].append(await _started(long))
    pairs = zip(times["long"], times["short"], strict=True)
    growth = median(one / other for one, other in pairs)
    return [
        Line("start", f"start to READY=1 with {fewer:,} records", median(times["short"]), "s"),
        Line(
            "start_long", f"start to READY=1 with {records:,} records", median(times["long"]), "s"
        ),
        Line("start_ratio", "  beside each other", growth, "times", at_most=1.5),
    ]


def _measure(pace: Pace) -> list[Line]:
    wanted = sizes(pace)
    with scratch() as folder:
        lines = asyncio.run(_dealt(folder, wanted))
        return lines + asyncio.run(_starts(folder, wanted))


TABLE: Final = Section("table", "a whole table dealt by the daemon, from card to prompt", _measure)
