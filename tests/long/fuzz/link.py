"""A campaign of random histories: link, faulty line and simulated shoe.

    python -m tests.long.fuzz.link --steps 1000000 --jobs 2
    python -m tests.long.fuzz.link --history 4711 --length 60     one history again

Exit code 0: all that was tried held. 1: one did not; its seed and how to play it again are shown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct, field

from firmware_protocol.device import Draw, Load, Moment, MoveCover, RingMemory, TamperWith
from firmware_protocol.host import HostLink
from firmware_protocol.messages import REKEY_FRAMES, Info, Lock, LockState, Reread, Selftest
from tests.long.fuzz.two_ends import Terms
from tests.long.fuzz.world import LinkKind, World
from tests.support.firmware_protocol.line import CLEAN, Faults

MOMENTS: Final[tuple[Moment, ...]] = (
    "before_commit",
    "in_commit",
    "after_commit",
    "before_reply",
    "before_ack",
)
_SHM: Final = Path("/dev/shm")
MEMORY: Final = _SHM if os.access(_SHM, os.W_OK) else None
"""A folder in memory for the device's files; None for the default."""
DAY_US: Final = 86_400_000_000
SPANS_MS: Final = (1, 3, 8, 8, 20, 20, 60, 60, 150, 150, 400, 1200, 3000)


class Failed(AssertionError):
    """A history failed; the text has the command that repeats it."""


class Tally(Struct):
    """What was tried."""

    histories: int = 0
    steps: int = 0
    records: int = 0
    slowest_us: int = 0
    """Maximum time on the clean line."""
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.histories += other.histories
        self.steps += other.steps
        self.records += other.records
        self.slowest_us = max(self.slowest_us, other.slowest_us)
        self.counts += other.counts

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(self.counts.items()))
        return (
            f"{self.histories:,} histories, {self.steps:,} steps, {self.records:,} records; "
            f"clean after {self.slowest_us / 1e6:.1f} s at most\n{counts}"
        )


def play(
    seed: int, steps: int, *, kind: LinkKind = HostLink, tampered: bool | None = None
) -> Tally:
    """Play one history of so many steps. Raises Failed if an invariant is violated. `tampered`: the
    ring may be changed; without it that is drawn too."""
    random = Random(seed)
    with tempfile.TemporaryDirectory(prefix="history-", dir=MEMORY) as folder:
        terms = Terms(
            rekey_frames=random.choice((REKEY_FRAMES, REKEY_FRAMES, 25, 80)),
            session_life_us=random.choice((DAY_US, DAY_US, DAY_US, 1_500_000)),
            gate=random.random() < 0.8,
            tampered=random.random() < 0.15 if tampered is None else tampered,
            breaks=frozenset({"fork-unnoticed"} if random.random() < 0.5 else ()),
        )
        world = World(Path(folder) / "device", random, terms, kind=kind)
        acts = _ACTS + (_TAMPERING if world.terms.tampered else ())
        try:
            for _, act in random.choices(acts, [weight for weight, _ in acts], k=steps):
                act(world)
                world.run(random.choice(SPANS_MS) * random.randint(500, 1500))
            slowest = world.settle()
        except Exception as problem:
            why = f"{type(problem).__name__}: {problem}"
            again = f"python -m tests.long.fuzz.link --history {seed} --length {steps}"
            raise Failed(f"{why} - again: {again}") from problem
    return Tally(1, steps, len(world.shoe.committed), slowest, world.counts)


# --- what happens ---------------------------------------------------------------------------


def _draw(world: World) -> None:
    count = world.random.choice((1, 1, 1, 2, 4, 12))
    if not world.hand(Draw(count=count, dwell_ms=1, force=True)):
        world.hand(MoveCover(open=False))
        world.hand(Load(decks=1, seed=1))


def _some_faults(random: Random) -> Faults:
    if random.random() < 0.25:
        return CLEAN
    if random.random() < 0.1:
        return Faults(loss=1.0)
    shares = {
        name: random.choice((0.0, 0.02, 0.1, 0.3)) if random.random() < 0.4 else 0.0
        for name in ("loss", "double", "flip", "cut", "splice", "noise", "reorder")
    }
    return Faults(
        **shares,
        delay_us=random.choice((0, 0, 500, 20_000)),
        byte_us=random.choice((0, 9, 87)),
    )


def _kill_between(world: World) -> None:
    """The records are on the disk, and the link was not told."""
    world.disk.write()
    world.kill_host()


def _write_one(world: World) -> None:
    world.disk.write(world.random.randint(1, 3))
    if world.random.random() < 0.7:
        world.tell_kept()


def _read(world: World) -> None:
    part = world.disk.kept
    world.call(Reread(part.epoch, part.last) if part is not None and part.records else Info())


Act = Callable[[World], object]
_ACTS: Final[tuple[tuple[int, Act], ...]] = (
    (24, _draw),
    (4, lambda world: world.hand(MoveCover(open=world.random.random() < 0.4))),
    (6, lambda _: None),  # time passes after each step anyway
    (8, lambda world: world.set_faults(*(_some_faults(world.random) for _ in range(2)))),
    (3, lambda world: world.set_faults(CLEAN, CLEAN)),
    (2, lambda world: world.kill_host()),
    (2, lambda world: setattr(world, "dies_hearing", world.link is not None)),
    (2, _kill_between),
    (3, lambda world: setattr(world, "keeps_at_once", False)),
    (3, lambda world: setattr(world, "keeps_at_once", True)),
    (6, _write_one),
    (8, lambda world: world.open_port()),
    (2, lambda world: world.lose_port(unplugged=world.random.random() < 0.7)),
    (2, lambda world: world.shoe.off(world.now + world.random.randrange(2_000_000))),
    (3, lambda world: world.shoe.cut_at(world.random.choice(MOMENTS))),
    (1, lambda world: world.shoe.freeze(world.now + world.random.randrange(2_500_000))),
    (1, lambda world: world.stall(world.random.randrange(2_500_000))),
    (1, lambda world: world.pause()),
    (3, lambda world: world.go_on()),
    (3, lambda world: world.call(Lock(world.random.choice(list(LockState))))),
    (2, _read),
    (1, lambda world: world.call(Selftest())),
    (1, lambda world: world.hand(TamperWith("magnet", world.random.random() < 0.5))),
)
_TAMPERING: Final[tuple[tuple[int, Act], ...]] = (
    (5, lambda world: world.hand(RingMemory("save"))),
    (5, lambda world: world.hand(RingMemory("restore"))),
    (1, lambda world: world.hand(RingMemory("replace"))),
)


CHUNK: Final = 50
"""Histories that a process plays before it reports."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    start = time.monotonic()
    try:
        again = options.history is not None
        tally = play(options.history, options.length) if again else _campaign(options)
    except Failed as failed:
        print(f"FAILED: {failed}")
        return 1
    print(f"seed {options.seed}: {tally}\n{time.monotonic() - start:.0f} s")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.long.fuzz.link", description=__doc__)
    parser.add_argument("--steps", type=_positive, default=1_000_000, help="how many in all")
    parser.add_argument("--length", type=_positive, default=60, help="steps of one history")
    parser.add_argument("--seed", type=_natural, default=0, help="of the first history")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes")
    parser.add_argument("--history", type=_natural, help="play only the history of this seed")
    return parser.parse_args(arguments)


def _natural(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
    return int(text)


_positive: Final = partial(_natural, least=1)


def _campaign(options: argparse.Namespace) -> Tally:
    histories = -(-options.steps // options.length)
    chunks = [
        (first, min(CHUNK, options.seed + histories - first), options.length)
        for first in range(options.seed, options.seed + histories, CHUNK)
    ]
    tally = Tally()
    for number, part in enumerate(_played(chunks, options.jobs), 1):
        tally.add(part)
        if number % 20 == 0:
            print(f"{tally.histories:,} histories, {tally.steps:,} steps", flush=True)
    return tally


def _played(chunks: list[tuple[int, int, int]], jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from map(chunk, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap(_reported, chunks):
            if isinstance(result, str):
                raise Failed(result)
            yield result
        pool.close()
        pool.join()


def _reported(which: tuple[int, int, int]) -> Tally | str:
    """A failure is passed between processes as its text."""
    try:
        return chunk(which)
    except Failed as failed:
        return str(failed)


def chunk(which: tuple[int, int, int]) -> Tally:
    """Histories from a seed on: first seed, how many, steps of each."""
    first, count, length = which
    tally = Tally()
    for seed in range(first, first + count):
        tally.add(play(seed, length))
    return tally


if __name__ == "__main__":
    sys.exit(main())
