"""A whole table: `holecard serve` with its record on the disk, and nine devices on ptys and USB.

    async with played(stage) as table:
        await table.play(rounds=10)
        table.cards.times       # seconds from a card's last byte to the bytes that show it

Dealer, devices and the stream's reader are in this process, the daemon is another one. A card is
timed from writing the last byte of its record to the shoe's pty to reading the first byte of the
view that shows it, with the next prompt. Both times are CLOCK_MONOTONIC of one thread, so work of
this event loop in between, such as acknowledgements and lamps, is included.

Beside the cards of each round, by turns with them: a page overwritten and synced in the same
directory, and a bare pty with another process behind it. A start with a long record is measured by
turns with one with a short record, whose last segment is about as full: only that one is replayed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from controller.api.contract.view import PromptShown, StateShown, View
from controller.audit.format.segments import SIZE, numbers
from controller.audit.read.reader import read_segment
from controller.audit.simulate import record_par
from controller.games import game_of_table
from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.state import Step
from controller.table.loop import load_keys
from controller.table.memory import TableDisplay
from hil.bench.bare import RawDisk, echo, memory, processor, watchers
from hil.bench.measure import (
    Figure,
    Pace,
    Samples,
    Section,
    p50_and_p99,
    scratch,
    seconds,
    value_of,
)
from hil.simulator import LiveDevice, SimulatedDevice
from hil.table.robots import (
    PREFIX,
    Api,
    Console,
    PlayerChoice,
    Robot,
    RobotOptions,
    Unreachable,
)
from hil.table.setup import DEALER, FEW, Stage, example, staged

SEATS: Final = 7
GAP_MS: Final = 0
"""Minimum time between two cards."""
TABLE_FILE: Final = "mega-1"
FULL_ROUNDS: Final = (1_000, 20_000)
"""Rounds after which the memory is read."""
_OPTIONS: Final = RobotOptions(buttons=False, dwell_ms=0)
_MAIN: Final = 2500
_BANK: Final = 100_000
_MAX_STEPS: Final = 10_000_000
_CARD_PROMPTS: Final = (Tell.TAKE_WAGERS, Tell.DEAL)
"""The prompts whose card is laid on the felt."""
_TIMEOUT: Final = 60.0
_MAX_EVENT: Final = 1 << 22
"""Bytes of an event of the stream."""
_view: Final = msgspec.json.Decoder(View).decode


# --- the table's clients ----------------------------------------------------------------------


class CardTimer:
    """Times each card from the shoe's pty to the view. The shoe calls `write` after its pty."""

    def __init__(self, shoe: LiveDevice) -> None:
        self.times: list[float] = []
        """Seconds of each card that was laid on the felt and shown."""
        self.drawn = 0
        """Number of cards that were drawn."""
        self._device = shoe.device
        self._head = shoe.device.firmware.ring.head
        self._prompt: PromptShown | None = None
        self._on_felt = 0
        self._written: int | None = None
        shoe.attach(self)

    def forget(self) -> None:
        """Discard the cards so far."""
        self.times.clear()
        self.drawn = 0

    def write(self, data: bytes) -> None:
        at = time.monotonic_ns()
        head = self._device.firmware.ring.head
        is_record, self._head = head != self._head, head  # else a heartbeat or reply
        if is_record and self._prompt is not None and self._prompt.tell in _CARD_PROMPTS:
            self.drawn += 1
            self._written = at

    def follow(self, device: SimulatedDevice) -> None:
        """Nothing to do: the power is never cut."""

    def close(self) -> None:
        """Nothing to close."""

    def shown(self, view: View, at: int) -> None:
        """Record a view whose first byte came at `at`, in nanoseconds."""
        on_felt = _on_felt(view.state)
        if on_felt > self._on_felt and self._written is not None:
            self.times.append((at - self._written) / 1e9)
            self._written = None
        self._on_felt, self._prompt = on_felt, view.prompt


def _on_felt(state: StateShown) -> int:
    """Returns the number of cards on the felt."""
    return sum(len(hand.cards) for hand in state.hands) + len(state.dealer) + bool(state.hole)


async def read_stream(
    reader: asyncio.StreamReader,
    on_event: Callable[[bytes, int], None],
    clock: Callable[[], int] = time.monotonic_ns,
) -> None:
    """Read the table's stream, without chunks: calls `on_event` with the data of each event and
    the time of its first byte. Raises Unreachable if there is none, IncompleteReadError if it
    ends."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise Unreachable(f"no stream: {head.decode(errors='replace')}")
    while True:
        first = await reader.readexactly(1)
        at = clock()
        _, found, data = (first + await reader.readuntil(b"\n\n")).partition(b"\ndata: ")
        if found:
            on_event(data.removesuffix(b"\n\n"), at)


class StandingPlayers:
    """Players who stand and never insure."""

    def __init__(self, seats: int = SEATS) -> None:
        self.seats = seats

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(seat, "main", _MAIN) for seat in range(1, self.seats + 1)]

    def choose(self, prompt: Prompt) -> PlayerChoice:
        ways = ("take_pay", "decline", "stand")
        return PlayerChoice(next(way for way in ways if way in prompt.choices))


class PlayedTable:
    """A served table with its robots; made by `played`."""

    def __init__(self, stage: Stage, console: Console) -> None:
        self.players = StandingPlayers()
        self.cards = CardTimer(stage.shoe)
        self._console = console
        self._robot = Robot(stage, console, self.players, _OPTIONS)

    @property
    def round(self) -> int:
        """The number of the last round."""
        return self._console.shown.state.round

    async def play(self, *, rounds: int = 1) -> None:
        """Play whole rounds; a closed table is opened first."""
        last = self.round + rounds

        def done(shown: TableDisplay) -> bool:
            s = shown.state
            self._robot.prompts.clear()
            return s.round >= last and s.step is Step.WAGERING and not s.hands

        await self._robot.play(done, most=_MAX_STEPS)

    async def card_times(self, cards: int) -> list[float]:
        """Returns the seconds of at least this many cards, in whole rounds."""
        self.cards.forget()
        while len(self.cards.times) < cards:
            await self.play()
        return self.cards.times[:]

    async def close(self) -> None:
        """Close the table; the next round has a new shoe."""
        await self._robot.act("TableClosed", "two", bank=_BANK)

    def see(self, data: bytes, at: int) -> None:
        """Adopt a view of the stream, whose first byte came at `at`."""
        view = _view(data)
        self.cards.shown(view, at)
        self._console.see(view)


@asynccontextmanager
async def played(stage: Stage) -> AsyncIterator[PlayedTable]:
    """Sign the dealer in and wait for all devices. Raises ApiProblem and Unreachable."""
    async with Api(stage.control) as api:
        screen = await api.open("dealer")
        await screen.sign_in(DEALER.badge, DEALER.pin)
        console = Console(screen, await screen.table())
        table = PlayedTable(stage, console)
        reader, writer = await asyncio.open_unix_connection(stage.control, limit=_MAX_EVENT)
        authorization = f"Authorization: Bearer {screen.token}"
        lines = (f"GET {PREFIX}/stream HTTP/1.0", "Host: localhost", authorization, "", "")
        writer.write("\r\n".join(lines).encode())
        reading = asyncio.create_task(read_stream(reader, table.see))
        try:
            await console.wait_for_devices()
            yield table
        finally:
            reading.cancel()
            writer.close()
            with suppress(asyncio.CancelledError):
                await reading


# --- a table that deals -----------------------------------------------------------------------


async def _dealt(folder: Path, pace: Pace) -> Samples:
    async with staged(folder / "table", gap_ms=GAP_MS) as stage:
        await stage.serve(replace(example(TABLE_FILE), screens=0))
        async with played(stage) as table:
            samples = await _at_table(table, stage, folder, pace)
        await stage.daemon.stop()
    return samples


async def _at_table(table: PlayedTable, stage: Stage, folder: Path, pace: Pace) -> Samples:
    pid, cards = stage.daemon.pid, pace.count(2_000, minimum=SEATS)
    samples: Samples = {"rounds": [], "VmRSS": [], "Pss": []}

    def read_memory() -> None:
        samples["rounds"].append(table.round)
        for name, value in memory(pid).items():
            samples[name].append(value)

    await table.play()  # the first round fills caches
    read_memory()
    samples |= await _card_times(table, folder, cards)
    read_memory()
    table.players.seats = 1
    first, start = table.round, time.perf_counter()
    for rounds in FULL_ROUNDS if pace.full else (pace.count(1_000, minimum=4),):
        await table.play(rounds=max(0, rounds - table.round))
        read_memory()
    samples["round_rate"] = [(table.round - first) / (time.perf_counter() - start)]
    before, idle = processor(pid), max(0.2, 10 * pace.share)
    await asyncio.sleep(idle)
    samples["idle"] = [100 * (processor(pid) - before) / idle]
    table.players.seats = SEATS
    return samples | await _watched(table, stage, max(1, cards // 4), pace)


async def _card_times(table: PlayedTable, folder: Path, cards: int) -> Samples:
    """Returns the seconds of cards, and by turns with each round those of the echo and disk."""
    samples: Samples = {"echo": [], "raw": []}
    table.cards.forget()
    found = table.cards.times
    with closing(RawDisk(folder / "raw")) as raw, echo() as echo_seconds:
        while len(found) < cards:
            before = len(found)
            await table.play()
            new = range(len(found) - before)
            samples["echo"] += [echo_seconds() for _ in new]
            samples["raw"] += [seconds(raw.once) for _ in new]
    if table.cards.drawn != len(found):
        raise AssertionError(f"{table.cards.drawn} cards came, {len(found)} were shown")
    return {**samples, "card": found[:]}


async def _watched(table: PlayedTable, stage: Stage, cards: int, pace: Pace) -> Samples:
    """Cards before, while and after browsers watch, one of which never reads."""
    count = pace.count(200, minimum=4)
    half = max(1, cards // 2)
    alone = await table.card_times(half)
    with ExitStack() as watching:
        # In a thread: the browsers wait for views, which this event loop causes.
        url = await stage.daemon.screens() or ""
        await asyncio.to_thread(watching.enter_context, watchers(url, count))
        watched = await table.card_times(cards)
    alone += await table.card_times(half)
    return {"watchers": [count], "watched": watched, "alone": alone}


# --- starts -----------------------------------------------------------------------------------


async def _start(stage: Stage) -> float:
    """Returns the seconds of a start to READY=1; stops the daemon when its devices are ready."""
    start = time.perf_counter()
    await stage.daemon.start()
    took = time.perf_counter() - start
    async with Api(stage.control) as api, asyncio.timeout(_TIMEOUT):
        while not (await api.health()).ready:
            await asyncio.sleep(0.02)
    await stage.daemon.stop()
    return took


def _record(stage: Stage, rounds: int) -> int:
    """Record simulated rounds, and return the number of records."""
    keys, game = load_keys(stage.house.keys), game_of_table(stage.table)
    record = stage.house.record
    return record_par(record, game, rounds, lambda _: keys, seats=SEATS, table=stage.name)


async def _open_and_close(stage: Stage, times: int) -> None:
    """Open the table so many times before its starts are measured."""
    await stage.daemon.start()
    async with played(stage) as table:
        table.players.seats = 1
        for _ in range(times):
            await table.play()
            await table.close()
    await stage.daemon.stop()


def _short_share(record: Path) -> float:
    """Returns which part of a record is one whole segment and a last one of the same length."""
    every = numbers(record)
    last = read_segment(record, every[-1]).end
    return min(1.0, (SIZE + last) / (SIZE * (len(every) - 1) + last))


async def _starts(folder: Path, pace: Pace) -> Samples:
    # A round at seven seats has at least 50 records.
    rounds = pace.count(200_000, full=10_000_000, minimum=1_000) // 50
    samples: Samples = {"start": [], "start_long": []}
    async with (
        staged(folder / "short", FEW, gap_ms=GAP_MS) as short,
        staged(folder / "long", FEW, gap_ms=GAP_MS) as long,
    ):
        for stage in (short, long):
            stage.write(example(TABLE_FILE))
        samples["records"] = [_record(long, rounds)]
        fewer = round(rounds * _short_share(long.house.record))
        samples["fewer"] = [_record(short, fewer)]
        for stage in (short, long):
            await _open_and_close(stage, pace.count(2, minimum=0))
        for _ in range(pace.count(3)):
            samples["start"].append(await _start(short))
            samples["start_long"].append(await _start(long))
    return samples


# --- figures ----------------------------------------------------------------------------------


def _measure(pace: Pace) -> Samples:
    with scratch() as folder:
        return {**asyncio.run(_dealt(folder, pace)), **asyncio.run(_starts(folder, pace))}


def _beside_page_and_echo(part: str, at_most: float) -> Figure:
    def value(samples: Samples) -> float:
        card, raw, echo = (value_of(f"{name} {part}", samples) for name in ("card", "raw", "echo"))
        return card / (raw + echo)

    text = f"card beside page and echo together, {part}"
    return Figure(f"card_ratio_{part}", text, "times", value, at_most=at_most)


def _memory(number: int, *, full: bool | None = None) -> Figure:
    """The memory after the first round, the cards, and each number of rounds."""

    def proportional(samples: Samples) -> str:
        share = samples["Pss"]
        return f"proportional {share[number]:.1f} MiB" if share else ""

    def resident(samples: Samples) -> float:
        return samples["VmRSS"][number]

    text = f"daemon's memory after {{rounds[{number}]:,}} rounds"
    return Figure(f"memory_{number}", text, "MiB", resident, note=proportional, full=full)


def _growth(first: int, *, full: bool, at_most: float | None = None) -> Figure:
    """The growth has a limit only with --full, over thousands of rounds."""

    def value(samples: Samples) -> float:
        memory, rounds = samples["VmRSS"], samples["rounds"]
        return 1024 * (memory[-1] - memory[first]) / max(1, rounds[-1] - rounds[first])

    text = f"  growth from {{rounds[{first}]:,}} to {{rounds[{first + 1}]:,}}, a round"
    return Figure("memory_growth", text, "KiB", value, at_most=at_most, full=full)


_WATCHED: Final = "card -> prompt, {watchers[0]} browsers beside none"
TABLE: Final = Section(
    "a whole table dealt by the daemon, from card to prompt",
    _measure,
    (
        Figure("cards", f"cards dealt, {SEATS} seats", "cards", lambda found: len(found["card"])),
        *p50_and_p99("raw", "4 KiB overwritten and fdatasync"),
        *p50_and_p99("echo", "bare pty, there and back"),
        *p50_and_p99("card", "card's last byte -> prompt's first"),
        _beside_page_and_echo("p50", at_most=2.0),
        _beside_page_and_echo("p99", at_most=3.0),
        Figure("watched_p50", f"{_WATCHED}, p50", "times", "watched / alone", at_most=1.5),
        Figure("watched_p99", f"{_WATCHED}, p99", "times", "watched / alone p99", at_most=2.0),
        *(_memory(number) for number in range(3)),
        _memory(3, full=True),
        _growth(1, full=False),
        _growth(2, full=True, at_most=0.5),
        Figure("round_rate", "rounds of one seat", "rounds/s", "round_rate"),
        Figure("idle", "daemon's CPU, table idle, nine devices", "% of core", "idle"),
        Figure("start", "start to READY=1 with {fewer[0]:,} records", "s", "start"),
        Figure("start_long", "start to READY=1 with {records[0]:,} records", "s", "start_long"),
        Figure("start_ratio", "  beside each other", "times", "start_long : start", at_most=1.5),
    ),
)
