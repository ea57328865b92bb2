"""Random histories of a World, each reproducible from its seed."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct, field

from firmware_protocol.device import Draw, Load, Moment, MoveCover, RingMemory, TamperWith
from firmware_protocol.host import HostLink
from firmware_protocol.messages import REKEY_FRAMES, Info, Lock, LockState, Reread, Selftest
from tests.long.fuzz.powered import Terms
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
        weights = [weight for weight, _ in acts]
        try:
            for _, act in random.choices(acts, weights, k=steps):
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
    if not world.hand(_draws(world.random.choice((1, 1, 1, 2, 4, 12)))):
        world.hand(MoveCover(open=False))
        world.hand(Load(decks=1, seed=1))


def _draws(count: int) -> Draw:
    return Draw(count=count, dwell_ms=1, force=True)


def _cover(world: World) -> None:
    world.hand(MoveCover(open=world.random.random() < 0.4))


def _wait(_: World) -> None:
    """Time passes after each step anyway."""


def _faults(world: World) -> None:
    random = world.random
    world.set_faults(*(_some_faults(random) for _ in range(2)))


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


def _calm(world: World) -> None:
    world.set_faults(CLEAN, CLEAN)


def _kill(world: World) -> None:
    world.kill_host()


def _kill_hearing(world: World) -> None:
    world.dies_hearing = world.link is not None


def _kill_between(world: World) -> None:
    """The records are on the disk, and the link was not told."""
    world.disk.write()
    world.kill_host()


def _slow_disk(world: World) -> None:
    world.keeps_at_once = False


def _fast_disk(world: World) -> None:
    world.keeps_at_once = True


def _write_one(world: World) -> None:
    world.disk.write(world.random.randint(1, 3))
    if world.random.random() < 0.7:
        world.tell_kept()


def _open(world: World) -> None:
    world.open_port()


def _lose_port(world: World) -> None:
    world.lose_port(unplugged=world.random.random() < 0.7)


def _power(world: World) -> None:
    world.power_off(world.random.randrange(2_000_000))


def _cut_at(world: World) -> None:
    world.cut_power_at(world.random.choice(MOMENTS))


def _freeze(world: World) -> None:
    world.freeze(world.random.randrange(2_500_000))


def _stall(world: World) -> None:
    world.stall(world.random.randrange(2_500_000))


def _pause(world: World) -> None:
    world.pause()


def _go_on(world: World) -> None:
    world.go_on()


def _lock(world: World) -> None:
    world.call(Lock(world.random.choice(list(LockState))))


def _read(world: World) -> None:
    part = world.disk.kept
    known = part is not None and part.records
    world.call(Reread(part.epoch, part.last) if part is not None and known else Info())


def _selftest(world: World) -> None:
    world.call(Selftest())


def _tamper(world: World) -> None:
    world.hand(TamperWith("magnet", world.random.random() < 0.5))


def _save_ring(world: World) -> None:
    world.hand(RingMemory("save"))


def _roll_back(world: World) -> None:
    world.hand(RingMemory("restore"))


def _new_ring(world: World) -> None:
    world.hand(RingMemory("replace"))


_ACTS: Final[tuple[tuple[int, Callable[[World], None]], ...]] = (
    (24, _draw),
    (4, _cover),
    (6, _wait),
    (8, _faults),
    (3, _calm),
    (2, _kill),
    (2, _kill_hearing),
    (2, _kill_between),
    (3, _slow_disk),
    (3, _fast_disk),
    (6, _write_one),
    (8, _open),
    (2, _lose_port),
    (2, _power),
    (3, _cut_at),
    (1, _freeze),
    (1, _stall),
    (1, _pause),
    (3, _go_on),
    (3, _lock),
    (2, _read),
    (1, _selftest),
    (1, _tamper),
)
_TAMPERING: Final[tuple[tuple[int, Callable[[World], None]], ...]] = (
    (5, _save_ring),
    (5, _roll_back),
    (1, _new_ring),
)
