"""The cable between host and device: what goes in comes out late, harmed, twice or not at all.

    strand = Strand("to host")
    strand.set(Line(flip=0.01, delay_ms=5), now)
    strand.put(data, now)
    data = strand.take(now)       # what has arrived by now; due() says when there will be more

One direction each. Noise strikes whole frames, so that a share is one of frames: what lies between
two 0x00 is one, and so is what grows longer than LONGEST. Each frame takes the same draws from the
generator whatever the shares are: the same seed strikes the same frames, at any cut into reads.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final

from msgspec import Struct

from firmware_protocol.device.control import LineNoise

MAX_FRAME_BYTES: Final = 512
"""So many bytes without a 0x00 are taken for a frame."""
MAX_IN_FLIGHT: Final = 1 << 20
"""No more bytes are under way; what comes beyond is lost."""
CLEAN: Final = LineNoise()


class NoiseCounts(Struct):
    """How many frames the noise has seen and struck."""

    frames: int = 0
    flipped: int = 0
    dropped: int = 0
    doubled: int = 0
    spliced: int = 0
    cut: int = 0


class _Draws(Struct, frozen=True):
    flip: float
    drop: float
    double: float
    splice: float
    cut: float
    bit: float
    start: float
    length: float


class CableDirection:
    """One direction of the cable."""

    def __init__(self, name: str) -> None:
        self.struck = NoiseCounts()
        self.lost = 0
        """Bytes for which there was no room."""
        self._name = name
        self._line = CLEAN
        self._noisy = False
        self._random = Random(name)
        self._held = bytearray()
        self._way: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def set(self, line: LineNoise, now: int) -> None:
        """Noise from now on. Half a frame that waits goes on unharmed."""
        self._send(bytes(self._held), now)
        self._held.clear()
        self._line = line
        self._noisy = any((line.flip, line.drop, line.double, line.splice, line.cut))
        self._random = Random(f"{line.seed} {self._name}")
        self.struck = NoiseCounts()

    def clear(self) -> None:
        """The cable is pulled: what was under way is gone."""
        self._held.clear()
        self._way.clear()
        self._size = 0

    def put(self, data: bytes, now: int) -> None:
        if not self._noisy:
            self._send(data, now)
            return
        self._held += data
        for chunk in self._chunks():
            self._send(chunk if chunk == b"\0" else self._strike(chunk), now)

    def take(self, now: int) -> bytes:
        """What has arrived. A shorter delay overtakes nothing: it waits for what is before it."""
        out = []
        while self._way and self._way[0][0] <= now:
            out.append(self._way.popleft()[1])
        data = b"".join(out)
        self._size -= len(data)
        return data

    def due(self) -> int | None:
        return self._way[0][0] if self._way else None

    def _send(self, data: bytes, now: int) -> None:
        if self._size + len(data) > MAX_IN_FLIGHT:
            self.lost += len(data)
            return
        if not data:
            return
        self._way.append((now + self._line.delay_ms * 1000, data))
        self._size += len(data)

    def _chunks(self) -> list[bytes]:
        """What is whole, each with its 0x00; the rest stays held."""
        out = []
        while self._held:
            zero = self._held.find(0, 0, MAX_FRAME_BYTES)
            size = zero + 1 if zero >= 0 else MAX_FRAME_BYTES
            if zero < 0 and len(self._held) < MAX_FRAME_BYTES:
                break
            out.append(bytes(self._held[:size]))
            del self._held[:size]
        return out

    def _strike(self, frame: bytes) -> bytes:
        draws = _Draws(*(self._random.random() for _ in _Draws.__struct_fields__))
        line, struck = self._line, self.struck
        struck.frames += 1
        if draws.drop < line.drop:
            struck.dropped += 1
            return b""
        if draws.flip < line.flip:
            struck.flipped += 1
            frame = _flip(frame, int(draws.bit * 8 * len(frame)))
        if draws.cut < line.cut:
            struck.cut += 1
            frame = _cut(frame, draws.start, draws.length)
        if draws.splice < line.splice:
            struck.spliced += 1
            frame = frame.removesuffix(b"\0")
        if draws.double < line.double:
            struck.doubled += 1
            frame += frame
        return frame


def _flip(frame: bytes, bit: int) -> bytes:
    out = bytearray(frame)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def _cut(frame: bytes, start: float, length: float) -> bytes:
    """A run of bytes is missing; the 0x00 at the end is not part of it."""
    body = len(frame) - frame.endswith(b"\0")
    if not body:  # a flipped bit has left nothing else
        return frame
    first = int(start * body)
    return frame[:first] + frame[first + 1 + int(length * (body - first)) :]
