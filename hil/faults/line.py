"""The cable between host and device, with delay and noise.

    direction = CableDirection("to host")
    direction.set(LineNoise(flip=0.01, delay_ms=5), now)
    direction.put(data, now)
    data = direction.take(now)    # what has arrived by now; due() is the next arrival

Noise changes whole frames, so that its rates are rates of frames. A frame ends at its 0x00, or
after MAX_FRAME_BYTES. Each frame takes the same number of random draws, so that a seed selects the
same frames at every rate and for every split of the bytes into reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Final

from msgspec import Struct

from firmware_protocol.device import LineNoise

MAX_FRAME_BYTES: Final = 512
"""Limit of a frame without a 0x00."""
MAX_IN_FLIGHT: Final = 1 << 20
"""Limit of the buffer in bytes; further bytes are dropped."""
CLEAN: Final = LineNoise()


class NoiseCounts(Struct):
    """Numbers of frames, in total and by what the noise did to them."""

    frames: int = 0
    flipped: int = 0
    dropped: int = 0
    doubled: int = 0
    spliced: int = 0
    cut: int = 0


class CableDirection:
    """One direction of the cable."""

    def __init__(self, name: str) -> None:
        self.counts = NoiseCounts()
        self.lost = 0
        """Bytes that were dropped because the buffer was full."""
        self._name = name
        self._line = CLEAN
        self._noisy = False
        self._random = Random(name)
        self._partial = bytearray()
        self._queue: deque[tuple[int, bytes]] = deque()
        self._size = 0

    def set(self, line: LineNoise, now: int) -> None:
        """Set noise and delay. An incomplete frame in the buffer is passed on unchanged."""
        self._send(bytes(self._partial), now)
        self._partial.clear()
        self._line = line
        self._noisy = any((line.flip, line.drop, line.double, line.splice, line.cut))
        self._random = Random(f"{line.seed} {self._name}")
        self.counts = NoiseCounts()

    def clear(self) -> None:
        """Drop all bytes in transit: the cable was pulled."""
        self._partial.clear()
        self._queue.clear()
        self._size = 0

    def put(self, data: bytes, now: int) -> None:
        if not self._noisy:
            self._send(data, now)
            return
        self._partial += data
        for chunk in self._chunks():
            self._send(chunk if chunk == b"\0" else self._distort(chunk), now)

    def take(self, now: int) -> bytes:
        """The bytes that have arrived. The order stays when the delay becomes shorter."""
        out = []
        while self._queue and self._queue[0][0] <= now:
            out.append(self._queue.popleft()[1])
        data = b"".join(out)
        self._size -= len(data)
        return data

    def due(self) -> int | None:
        return self._queue[0][0] if self._queue else None

    def _send(self, data: bytes, now: int) -> None:
        if self._size + len(data) > MAX_IN_FLIGHT:
            self.lost += len(data)
            return
        if not data:
            return
        self._queue.append((now + self._line.delay_ms * 1000, data))
        self._size += len(data)

    def _chunks(self) -> list[bytes]:
        """The complete frames, each with its 0x00; the rest stays buffered."""
        out = []
        while self._partial:
            zero = self._partial.find(0, 0, MAX_FRAME_BYTES)
            size = zero + 1 if zero >= 0 else MAX_FRAME_BYTES
            if zero < 0 and len(self._partial) < MAX_FRAME_BYTES:
                break
            out.append(bytes(self._partial[:size]))
            del self._partial[:size]
        return out

    def _distort(self, frame: bytes) -> bytes:
        draws = {name: self._random.random() for name in _DRAWS}
        self.counts.frames += 1
        if draws["drop"] < self._line.drop:
            self.counts.dropped += 1
            return b""
        if draws["flip"] < self._line.flip:
            self.counts.flipped += 1
            frame = _flip(frame, draws)
        if draws["cut"] < self._line.cut:
            self.counts.cut += 1
            frame = _cut(frame, draws)
        if draws["splice"] < self._line.splice:
            self.counts.spliced += 1
            frame = frame.removesuffix(b"\0")
        if draws["double"] < self._line.double:
            self.counts.doubled += 1
            frame = frame * 2
        return frame


def _flip(frame: bytes, draws: Mapping[str, float]) -> bytes:
    bit = int(draws["bit"] * 8 * len(frame))
    out = bytearray(frame)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def _cut(frame: bytes, draws: Mapping[str, float]) -> bytes:
    """Remove a run of bytes, without the 0x00 at the end."""
    body = len(frame) - frame.endswith(b"\0")
    if not body:  # after a flipped bit only the 0x00 is left
        return frame
    first = int(draws["start"] * body)
    return frame[:first] + frame[first + 1 + int(draws["length"] * (body - first)) :]


_DRAWS: Final = ("flip", "drop", "double", "splice", "cut", "bit", "start", "length")
"""The random numbers that each frame takes, in this order."""


# --- cutting a byte stream at frame ends -----------------------------------------------------


def whole_frames(data: bytes, room: int) -> bytes:
    """The part of the data that fits, up to the end of a frame, its 0x00."""
    if len(data) <= room:
        return data
    return data[: data.rfind(0, 0, max(room, 0)) + 1]


def frame_remainder(data: bytes, at: int) -> bytes:
    """The rest of the frame that is cut at `at`; empty if a frame starts there."""
    if not at or data[at - 1] == 0:
        return b""
    end = data.find(0, at) + 1
    return data[at : end or len(data)]
