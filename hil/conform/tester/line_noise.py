"""A bad cable, put between tester and device by the tester itself: the same for every port.

Whole frames are hit, each with the same chance: a bit flips, the frame is dropped, comes twice, or
loses its end so that it grows together with the next one.
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
        self._held = b""
        self.hits = 0
        self._ways: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            lambda _: b"",
            lambda frame: frame * 2,
            self._splice,
        )

    def out(self, data: bytes) -> bytes:
        """What the device gets of this frame."""
        return self._hit(data)

    def back(self, data: bytes) -> bytes:
        """What the tester gets of these bytes; the rest of a frame is held until it is whole."""
        *frames, self._held = (self._held + data).split(b"\0")
        return b"".join(self._hit(frame + b"\0") for frame in frames)

    def begun(self) -> bytes:
        """What has come of a frame that is not whole yet; the tester is given it now."""
        begun, self._held = self._held, b""
        return begun

    def _hit(self, frame: bytes) -> bytes:
        if len(frame) < 2 or self._rng.random() >= self._share:
            return frame
        self.hits += 1
        return self._rng.choice(self._ways)(frame)

    def _flip(self, frame: bytes) -> bytes:
        at = self._rng.randrange(len(frame))
        return frame[:at] + bytes((frame[at] ^ 1 << self._rng.randrange(8),)) + frame[at + 1 :]

    def _splice(self, frame: bytes) -> bytes:
        return frame[: self._rng.randrange(1, len(frame))]
