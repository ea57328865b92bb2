"""One direction of a faulty line, in simulated time.

    line = Line(Random(7))
    line.faults = Faults(loss=0.1, flip=0.05)
    line.put(data, now)
    data = line.take(now)       # what has arrived by now; due() says when there will be more

Faults strike frames, so that a share is one of frames. Late and reordered ones overtake each other,
which no cable does; a link must bear it all the same.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from random import Random

from msgspec import Struct


class Faults(Struct, frozen=True):
    """Shares of all frames, and how slow the line is."""

    loss: float = 0.0
    double: float = 0.0
    flip: float = 0.0
    """One to three bits."""
    cut: float = 0.0
    """A run of bytes is missing."""
    splice: float = 0.0
    """The 0x00 at its end is missing: it runs into the next one."""
    noise: float = 0.0
    """Random bytes before it."""
    reorder: float = 0.0
    """It arrives up to 60 ms late, and others overtake it."""
    delay_us: int = 0
    byte_us: int = 0
    """How long a byte takes: 87 at 115200 baud."""


CLEAN = Faults()


class Line:
    """Delays, damages, doubles and drops frames."""

    def __init__(
        self, random: Random, struck: Counter[str] | None = None, faults: Faults = CLEAN
    ) -> None:
        self.faults = faults
        self.struck: Counter[str] = Counter() if struck is None else struck
        """Frames per kind of fault."""
        self._random = random
        self._way: list[tuple[int, int, bytes]] = []
        self._number = 0
        self._free_at = 0

    def put(self, data: bytes, now: int) -> None:
        if not data:
            return
        if self.faults is CLEAN:
            self._send(data, now, 0)
            return
        for frame in data.split(b"\0")[:-1]:  # whoever sends, sends whole frames
            self._strike(frame + b"\0", now)

    def take(self, now: int) -> bytes:
        """What has arrived."""
        if not self._way or self._way[0][0] > now:
            return b""
        out = []
        while self._way and self._way[0][0] <= now:
            out.append(heappop(self._way)[2])
        return b"".join(out)

    def due(self) -> int | None:
        return self._way[0][0] if self._way else None

    def clear(self) -> None:
        """The cable is disconnected: bytes in transit are lost."""
        self._way.clear()

    def _strike(self, frame: bytes, now: int) -> None:
        faults, random = self.faults, self._random
        if self._hit("loss", faults.loss):
            return
        late = 0
        if self._hit("reorder", faults.reorder):
            late = random.randrange(60_000)
        if self._hit("flip", faults.flip):
            frame = self._flip(frame)
        if self._hit("cut", faults.cut):
            first = random.randrange(len(frame))
            frame = frame[:first] + frame[first + random.randint(1, 40) :]
        if self._hit("splice", faults.splice):
            frame = frame[:-1]
        if self._hit("noise", faults.noise):
            frame = random.randbytes(random.randint(1, 300)) + frame
        self._send(frame, now, late)
        if self._hit("double", faults.double):
            self._send(frame, now, random.choice((0, late, 30_000)))

    def _hit(self, kind: str, share: float) -> bool:
        hit = share > 0 and self._random.random() < share
        if hit:
            self.struck[kind] += 1
        return hit

    def _flip(self, frame: bytes) -> bytes:
        out = bytearray(frame)
        for _ in range(self._random.randint(1, 3)):
            out[self._random.randrange(len(out))] ^= 1 << self._random.randrange(8)
        return bytes(out)

    def _send(self, data: bytes, now: int, late: int) -> None:
        if not data:
            return
        self._free_at = max(self._free_at, now) + self.faults.byte_us * len(data)
        self._number += 1
        heappush(self._way, (self._free_at + self.faults.delay_us + late, self._number, data))
