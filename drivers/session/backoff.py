"""How long a supervisor rests before it looks for its device again."""

from __future__ import annotations

from typing import Final

from drivers.devices import State

REST_FIRST: Final = 0.1
"""Seconds before the first new try; each further one waits twice as long."""
REST_MOST: Final = 1.0
REST_REFUSED: Final = 5.0
"""Someone else is there: the right device may be plugged in at any time, but not ten times a
second."""
STEADY_US: Final = 1_000_000
"""A device that was ready for so long is looked for at once when it is lost."""
_TRIES_MOST: Final = 10


class Rests:
    """The longer it was in vain, the longer."""

    def __init__(self) -> None:
        self._tries = 0
        self._ready_at: int | None = None

    def stands(self, state: State, now: int) -> None:
        """The device stands so from now on."""
        if self._ready_at is not None and now - self._ready_at >= STEADY_US:
            self._tries = 0
        self._ready_at = now if state is State.READY else None

    def next(self, state: State) -> float:
        """Seconds until the next try."""
        if state is State.REFUSED:
            return REST_REFUSED
        rest = min(REST_FIRST * (1 << self._tries), REST_MOST)
        self._tries = min(self._tries + 1, _TRIES_MOST)
        return rest
