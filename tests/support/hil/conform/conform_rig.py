"""The conformance run against devices in memory, in simulated time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol import conformance
from firmware_protocol.conformance import ConformanceItem, Profile
from firmware_protocol.device import (
    Answer,
    ControlRequest,
    Mechanism,
    Peer,
    create_identity,
    load_identity,
    pair_directly,
)
from firmware_protocol.messages import DeviceClass
from hil.conform.items import TRIALS
from hil.conform.runs.runner import ItemOutcome, run_item
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.operators import Operator, SimulatedOperator
from hil.conform.tester.wire import ReceivedBytes, WireLost
from hil.devices import SimulatedShoe, SimulatedShuffler, SimulatedStation
from hil.simulator import SimulatedDevice

_T = TypeVar("_T")

PROFILES: tuple[Profile, ...] = ("shoe", "shuffler", "station")
MECHANISMS: dict[Profile, Callable[[], Mechanism]] = {
    "shoe": SimulatedShoe,
    "shuffler": SimulatedShuffler,
    "station": SimulatedStation,
}
ITEMS = {item.id: item for item in conformance.load_items()}
OWN = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
_BUSY_TURNS: Final = 10_000
"""A device that is due more often at the same time is in an endless loop."""


def of(profile: Profile) -> list[ConformanceItem]:
    return [item for item in ITEMS.values() if item.concerns(profile)]


@cache
def _made(profile: Profile) -> dict[str, bytes]:
    """The files of a new device that is paired. Made once: each is written through to the disk."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "device"
        kind = DeviceClass[profile.upper()]
        create_identity(place, kind, "XX-0001", rng=Random(profile).randbytes)
        pair_directly(place, OWN.public_key().public_bytes_raw())
        return {file.name: file.read_bytes() for file in place.iterdir()}


class SimulatedWire:
    """A device in memory, in simulated time.

    Time passes only in receive(): it jumps to the next event, so that a minute of silence costs
    nothing and every interval is exact.
    """

    simulated = True

    def __init__(self, peer: Peer, now: int) -> None:
        self._peer = peer
        self._now = now

    def now(self) -> int:
        return self._now

    def send(self, data: bytes) -> None:
        self._peer.receive(data, self._now)

    async def receive(self, until: int) -> ReceivedBytes | None:
        for _ in range(_BUSY_TURNS):
            data = self._peer.take()
            if data:
                return ReceivedBytes(data, self._now)
            due = self._peer.due()
            if self._now >= until and (due is None or due > self._now):
                return None
            self._now = max(self._now, until if due is None else min(due, until))
            self._peer.wake(self._now)
        raise WireLost(f"the simulated device is in an endless loop at {self._now} us")

    async def run_beside(self, doing: Coroutine[Any, Any, _T], pump: object) -> _T:
        return await doing

    async def reopen(self, until: int) -> None:
        pass

    async def sleep(self, until: int) -> None:
        while self._now < until:
            await self.receive(until)

    async def close(self) -> None:
        pass


class InProcessOperator(SimulatedOperator):
    """A simulated device in this process."""

    name = "direct"

    def __init__(self, request: Callable[[ControlRequest], Answer]) -> None:
        self._request = request

    async def do(self, request: ControlRequest) -> Answer:
        return self._request(request)


class Rig:
    """A device of this profile that is paired with the tester."""

    def __init__(
        self,
        folder: Path,
        profile: Profile,
        *,
        breaks: Collection[str] = (),
        mechanism: Callable[[], Mechanism] | None = None,
        operator: Operator | None = None,
        behind: Callable[[Peer], Peer] = lambda peer: peer,
        seed: int = 1,
    ) -> None:
        place = folder / "device"
        place.mkdir(parents=True)
        for name, data in _made(profile).items():
            (place / name).write_bytes(data)
        self.stand = SimulatedDevice(
            place,
            MECHANISMS[profile] if mechanism is None else mechanism,
            now=0,
            breaks=set(breaks),
            sync=False,
            random=Random(seed + 1).randbytes,
        )
        self.peer = behind(self.stand)
        self.wire = SimulatedWire(self.peer, 0)
        self.bench = ConformBench(
            self.wire,
            profile,
            InProcessOperator(self.request) if operator is None else operator,
            own=OWN,
            device_key=load_identity(place).public,
            seed=seed,
        )

    def request(self, request: ControlRequest) -> Answer:
        now = self.wire.now()
        try:
            return self.stand.request(request, now)
        finally:
            self.peer.wake(now)  # what the request made goes on its way at once

    def attempt(self, name: str) -> ItemOutcome:
        return asyncio.run(run_item(self.bench, ITEMS[name], TRIALS[name]))

    def run(self, names: Collection[str]) -> list[ItemOutcome]:
        return [self.attempt(name) for name in names]


def unlike_a_pass(outcomes: list[ItemOutcome]) -> list[tuple[str, str, str]]:
    return [
        (one.item.id, one.result, one.remark or f"{one.sent} / {one.expected} / {one.came}")
        for one in outcomes
        if one.result != "PASS"
    ]


class Paced:
    """A cable of 115200 baud, and ports that hold bytes back now and then."""

    def __init__(self, peer: Peer, jitter_us: int = 0, seed: int = 1) -> None:
        self._peer = peer
        self._random = Random(seed)
        self._jitter = jitter_us
        self._there: deque[tuple[int, bytes]] = deque()
        self._back: deque[tuple[int, bytes]] = deque()
        self._busy = [0, 0]
        self._out = b""

    def receive(self, data: bytes, now: int) -> None:
        self._put(self._there, data, now, 0)
        self.wake(now)

    def wake(self, now: int) -> None:
        while self._there and self._there[0][0] <= now:
            at, data = self._there.popleft()
            self._peer.receive(data, at)
        self._peer.wake(now)
        self._put(self._back, self._peer.take(), now, 1)
        while self._back and self._back[0][0] <= now:
            self._out += self._back.popleft()[1]

    def due(self) -> int | None:
        dues = [queue[0][0] for queue in (self._there, self._back) if queue]
        inner = self._peer.due()
        return min(dues if inner is None else [*dues, inner], default=None)

    def take(self) -> bytes:
        out, self._out = self._out, b""
        return out

    def _put(self, queue: deque[tuple[int, bytes]], data: bytes, now: int, way: int) -> None:
        for start in range(0, len(data), 64):
            piece = data[start : start + 64]
            begins = max(self._busy[way], now)
            held = self._random.randrange(self._jitter + 1)
            self._busy[way] = begins + len(piece) * 1_000_000 // 11_520
            last = queue[-1][0] if queue else 0
            queue.append((max(last, self._busy[way] + held), piece))
