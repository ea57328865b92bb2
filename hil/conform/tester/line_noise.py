"""A noisy cable between tester and device, simulated by the tester itself, so that it is the same
at every port.

Noise changes whole frames, each with the same probability: a bit flips, the frame is dropped, is
sent twice, or loses its end and merges with the next one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

SHARE = 0.12
"""Of all frames, in each direction."""


class NoisyCable:
    def __init__(self, rng: random.Random, share: float = SHARE) -> None:
        self._rng = rng
        self._share = share
        self._partial = b""
        self.hits = 0
        self._changes: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            lambda _: b"",
            lambda frame: frame * 2,
            self.splice,
        )

    def to_device(self, frame: bytes) -> bytes:
        """What the device receives of this frame."""
        return self.distort(frame)

    def to_tester(self, data: bytes) -> bytes:
        """What the tester receives of these bytes. An incomplete frame is buffered."""
        *frames, self._partial = (self._partial + data).split(b"\0")
        return b"".join(self.distort(frame + b"\0") for frame in frames)

    def take_partial(self) -> bytes:
        """Empty the buffer and return the incomplete frame."""
        partial, self._partial = self._partial, b""
        return partial

    def distort(self, frame: bytes) -> bytes:
        if len(frame) < 2 or self._rng.random() >= self._share:
            return frame
        self.hits += 1
        return self._rng.choice(self._changes)(frame)

    def _flip(self, frame: bytes) -> bytes:
        at = self._rng.randrange(len(frame))
        return frame[:at] + bytes((frame[at] ^ 1 << self._rng.randrange(8),)) + frame[at + 1 :]

    def splice(self, frame: bytes) -> bytes:
        """The frame without its end."""
        return frame[: self._rng.randrange(1, len(frame))]
