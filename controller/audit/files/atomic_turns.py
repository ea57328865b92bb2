"""A file or a directory that several commands change takes them one after the other."""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import Final

from controller.audit.errors import InUse

WAIT: Final = 10.0
"""Seconds that a command waits for the one before it, which needs a moment."""
_EVERY: Final = 0.02


def take_turn(fd: int, place: Path) -> None:
    """The lock on `fd` is ours on return; it ends with the file's descriptor. InUse where another
    one has held it for too long: then nothing has changed. OSError."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                what = f"another command has been writing here for {WAIT:g} s"
                raise InUse(place, what, "see what holds it, then try again") from None
        else:
            return
        time.sleep(_EVERY)
