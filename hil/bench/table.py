"""A whole table: `holecard serve` with its record on the disk, and nine devices on ptys and USB.

Beside the cards of each round, by turns with them: a page overwritten and synced in the same
directory, and a bare pty with another process behind it. A start with a long record is measured by
turns with one with a short record, whose last segment is about as full: only that one is replayed.

The process behind the bare pty is `python -m hil.bench.table TERMINAL`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.segments import SIZE, numbers
from controller.audit.read.reader import read_segment
from controller.audit.simulate import record_par
from controller.games import game_of_table
from controller.table.running import load_keys
from hil.bench.measure import (
    Line,
    Pace,
    Samples,
    Section,
    child_process,
    quantile,
    ratio,
    scratch,
    times,
)
from hil.bench.record import RawDisk
from hil.bench.table_clients import GAP_MS, SEATS, PlayedTable, played, watchers
from hil.table.robots import Api
from hil.table.setup import FEW, Stage, example, staged

ECHO_BYTES: Final = 100
"""Approximate bytes of a card's record on the wire; as many are echoed."""
TABLE_FILE: Final = "mega-1"
CARDS: Final = 2_000
ROUNDS: Final = 1_000
FULL_ROUNDS: Final = (1_000, 20_000)
IDLE: Final = 10.0
"""Seconds."""
RECORDS: Final = 200_000
FULL_RECORDS: Final = 10_000_000
STARTS: Final = 3
WATCHERS: Final = 200
"""Browsers that watch the table."""
_RECORDS_A_ROUND: Final = 50
"""Minimum of simulated rounds at seven seats."""
_OPENINGS: Final = 2
"""Times that the table is opened before its starts are measured."""
_INTERVAL: Final = 0.02
_TIMEOUT: Final = 60.0
_MAX_GROWTH: Final = 0.5
"""KiB a round, with --full."""
_READ: Final = 4096
_KIB: Final = 1024
_MICRO: Final = 1e6
_PARTS: Final = {"p50": 0.5, "p99": 0.99}
_MAX_RATIO: Final = {"p50": 2.0, "p99": 3.0}
_MAX_WATCHED: Final = {"p50": 1.5, "p99": 2.0}


class TableSizes(Struct, frozen=True):
    """How much is measured."""

    cards: int
    rounds: tuple[int, ...]
    """Rounds after which the memory is read."""
    idle: float
    records: int
    starts: int
    watchers: int


def sizes(pace: Pace) -> TableSizes:
    if pace.full:
        return TableSizes(CARDS, FULL_ROUNDS, IDLE, FULL_RECORDS, STARTS, WATCHERS)
    share = pace.share
    return TableSizes(
        max(SEATS, round(CARDS * share)),
        (max(4, round(ROUNDS * share)),),
        max(0.2, IDLE * share),
        max(1_000, round(RECORDS * share)),
        max(1, round(STARTS * share)),
        max(4, round(WATCHERS * share)),
    )


# --- what cards are compared with -------------------------------------------------------------


class PtyEcho:
    """This process's end of a pty with an echo behind it."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._data = bytes(range(1, ECHO_BYTES + 1))

    def once(self) -> None:
        """Write the bytes, and read them all back."""
        os.write(self._master, self._data)
        left = ECHO_BYTES
        while left:
            left -= len(os.read(self._master, left))


@contextmanager
def echo() -> Iterator[PtyEcho]:
    """Yields a pty that a child process echoes."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        with child_process("hil.bench.table", os.ttyname(slave)):
            bare = PtyEcho(master)
            bare.once()  # the child has started
            yield bare
    finally:
        os.close(slave)
        os.close(master)


def serve_echo(terminal: str) -> None:
    port = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    while data := os.read(port, _READ):
        os.write(port, data)


# --- the daemon's process ---------------------------------------------------------------------


class DaemonMemory(Struct, frozen=True):
    """Memory of the daemon in KiB, after a number of rounds."""

    rounds: int
    resident: int
    proportional: int | None
    """With its share of pages that other processes use too; None if the kernel has no figure."""


def memory(pid: int, rounds: int) -> DaemonMemory:
    found = _sizes_in(Path(f"/proc/{pid}/status"))
    try:
        proportional = _sizes_in(Path(f"/proc/{pid}/smaps_rollup")).get("Pss")
    except OSError:  # not every kernel has it
        proportional = None
    return DaemonMemory(rounds, found["VmRSS"], proportional)


def _sizes_in(file: Path) -> dict[str, int]:
    lines = (line.split() for line in file.read_text().splitlines())
    return {one[0].rstrip(":"): int(one[1]) for one in lines if one[2:] == ["kB"]}


def processor(pid: int) -> float:
    """Returns the CPU seconds of a process, in user and kernel mode."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED: see clock_getcpuclockid(3)


# --- a table that deals -----------------------------------------------------------------------


async def _dealt(folder: Path, wanted: TableSizes) -> list[Line]:
    async with staged(folder / "table", gap_ms=GAP_MS) as stage:
        await stage.serve(replace(example(TABLE_FILE), screens=0))
        async with played(stage) as table:
            lines = await _at_table(table, stage, folder, wanted)
        await stage.daemon.stop()
    return lines


async def _at_table(
    table: PlayedTable, stage: Stage, folder: Path, wanted: TableSizes
) -> list[Line]:
    pid = stage.daemon.pid
    await table.play(rounds=1)
    table.cards.forget()  # the first round fills caches
    read = [memory(pid, table.round)]
    took = await _card_times(table, folder, wanted.cards)
    read.append(memory(pid, table.round))
    table.players.seats = 1
    first, begun = table.round, time.perf_counter()
    for rounds in wanted.rounds:
        await table.play(rounds=max(0, rounds - table.round))
        read.append(memory(pid, table.round))
    rounds_rate = (table.round - first) / (time.perf_counter() - begun)
    before = processor(pid)
    await asyncio.sleep(wanted.idle)
    idle = 100 * (processor(pid) - before) / wanted.idle
    table.players.seats = SEATS
    return [
        *_card_lines(took),
        *await _watched_lines(table, stage, wanted),
        *_memory_lines(read, full=wanted.rounds == FULL_ROUNDS),
        Line("round_rate", "rounds of one seat", rounds_rate, "rounds/s"),
        Line("idle", "daemon's CPU, table idle, nine devices", idle, "% of core"),
    ]


async def _card_times(table: PlayedTable, folder: Path, cards: int) -> Samples:
    """Returns the seconds of cards, and by turns with each round those of the echo and disk."""
    raw = RawDisk(folder / "raw")
    took: dict[str, list[float]] = {"echo": [], "raw": []}
    found = table.cards.times
    try:
        with echo() as bare:
            while len(found) < cards:
                before = len(found)
                await table.play(rounds=1)
                took["echo"] += times(bare.once, len(found) - before)
                took["raw"] += times(raw.once, len(found) - before)
    finally:
        raw.close()
    if table.cards.drawn != len(found):
        raise AssertionError(f"{table.cards.drawn} cards came, {len(found)} were shown")
    return Samples({**took, "card": found[:]})


def _card_lines(took: Samples) -> Iterator[Line]:
    texts = {
        "raw": "4 KiB overwritten and fdatasync",
        "echo": "bare pty, there and back",
        "card": "card's last byte -> prompt's first",
    }
    yield Line("cards", f"cards dealt, {SEATS} seats", len(took.by_name["card"]), "cards")
    for name, text in texts.items():
        for label, part in _PARTS.items():
            value = took.quantile(name, part) * _MICRO
            yield Line(f"{name}_{label}", f"{text}, {label}", value, "us")
    for label, part in _PARTS.items():
        both = took.quantile("raw", part) + took.quantile("echo", part)
        beside = took.quantile("card", part) / both
        text = f"card beside page and echo together, {label}"
        yield ratio(f"card_ratio_{label}", text, beside, at_most=_MAX_RATIO[label])


async def _watched_lines(table: PlayedTable, stage: Stage, wanted: TableSizes) -> list[Line]:
    """Cards before, while and after browsers watch, one of which never reads."""
    cards = wanted.cards // 4
    url = (await stage.daemon.screens() or "").rstrip("/")
    alone = await _some(table, max(1, cards // 2))
    with ExitStack() as watching:
        # In a thread: the browsers wait for views, which this event loop causes.
        await asyncio.to_thread(watching.enter_context, watchers(url, wanted.watchers))
        watched = await _some(table, max(1, cards))
    alone += await _some(table, max(1, cards // 2))
    text = f"card -> prompt, {wanted.watchers} browsers beside none"
    return [
        ratio(
            f"watched_{label}",
            f"{text}, {label}",
            quantile(watched, part) / quantile(alone, part),
            at_most=_MAX_WATCHED[label],
        )
        for label, part in _PARTS.items()
    ]


async def _some(table: PlayedTable, cards: int) -> list[float]:
    """Returns the seconds of at least this many cards, in whole rounds."""
    table.cards.forget()
    while len(table.cards.times) < cards:
        await table.play(rounds=1)
    return table.cards.times[:]


def _memory_lines(read: list[DaemonMemory], *, full: bool) -> Iterator[Line]:
    """The growth has a limit only with `full`, over thousands of rounds."""
    for number, one in enumerate(read):
        text = f"daemon's memory after {one.rounds:,} rounds"
        share = one.proportional
        note = "" if share is None else f"proportional {share / _KIB:.1f} MiB"
        yield Line(f"memory_{number}", text, one.resident / _KIB, "MiB", note=note)
    first, last = read[2 if full else 1], read[-1]
    growth = (last.resident - first.resident) / max(1, last.rounds - first.rounds)
    text = f"  growth from {first.rounds:,} to {last.rounds:,}, a round"
    yield Line("memory_growth", text, growth, "KiB", at_most=_MAX_GROWTH if full else None)


# --- starts -----------------------------------------------------------------------------------


async def _start(stage: Stage) -> float:
    """Returns the seconds of a start to READY=1; stops the daemon when its devices are ready."""
    begun = time.perf_counter()
    await stage.daemon.start()
    took = time.perf_counter() - begun
    async with Api(stage.control) as api, asyncio.timeout(_TIMEOUT):
        while not (await api.health()).ready:
            await asyncio.sleep(_INTERVAL)
    await stage.daemon.stop()
    return took


def _record(stage: Stage, rounds: int) -> int:
    """Record simulated rounds, and return the number of records."""
    keys, game = load_keys(stage.house.keys), game_of_table(stage.table)
    record = stage.house.record
    return record_par(record, game, rounds, lambda _: keys, seats=SEATS, table=stage.name)


async def _open_and_close(stage: Stage) -> None:
    await stage.daemon.start()
    async with played(stage) as table:
        table.players.seats = 1
        for _ in range(_OPENINGS):
            await table.play(rounds=1)
            await table.close()
    await stage.daemon.stop()


def _short_share(record: Path) -> float:
    """Returns which part of a record is one whole segment and a last one of the same length."""
    every = numbers(record)
    last = read_segment(record, every[-1]).end
    return min(1.0, (SIZE + last) / (SIZE * (len(every) - 1) + last))


async def _starts(folder: Path, wanted: TableSizes) -> list[Line]:
    async with (
        staged(folder / "short", FEW, gap_ms=GAP_MS) as short,
        staged(folder / "long", FEW, gap_ms=GAP_MS) as long,
    ):
        for stage in (short, long):
            stage.write(example(TABLE_FILE))
        rounds = wanted.records // _RECORDS_A_ROUND
        records = _record(long, rounds)
        fewer = _record(short, round(rounds * _short_share(long.house.record)))
        for stage in (short, long):
            await _open_and_close(stage)
        took: dict[str, list[float]] = {"short": [], "long": []}
        for _ in range(wanted.starts):
            took["short"].append(await _start(short))
            took["long"].append(await _start(long))
    starts = Samples(took)
    text = "start to READY=1 with"
    return [
        Line("start", f"{text} {fewer:,} records", starts.median("short"), "s"),
        Line("start_long", f"{text} {records:,} records", starts.median("long"), "s"),
        ratio("start_ratio", "  beside each other", starts.ratio("long", "short"), at_most=1.5),
    ]


def _measure(pace: Pace) -> list[Line]:
    wanted = sizes(pace)
    with scratch() as folder:
        lines = asyncio.run(_dealt(folder, wanted))
        return lines + asyncio.run(_starts(folder, wanted))


TABLE: Final = Section("table", "a whole table dealt by the daemon, from card to prompt", _measure)

if __name__ == "__main__":
    serve_echo(*sys.argv[1:])
