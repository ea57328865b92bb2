"""Which modules a piece of work passes through: calls traced with `sys.setprofile`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, Final

from tests.support.paths import ROOT

OURS: Final = tuple(f"{ROOT / name}/" for name in ("controller", "drivers", "firmware_protocol"))
DEVICE: Final = (f"{ROOT / 'firmware_protocol' / 'device'}/", f"{ROOT / 'hil'}/")
"""The device's side. What it calls of the protocol is its own work, and is not counted."""
SHARED: Final = f"{ROOT / 'firmware_protocol'}/"
PORTS: Final = str(ROOT / "tests" / "support" / "drivers" / "simulated.py")
"""Where simulated ports are."""
DELIVERS: Final = "_hear"
"""The function there that passes bytes to the host."""


class Trace:
    """The product files that were entered, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """File and function of each call."""
        self.reads: list[int] = []
        """How many calls had been made when a simulated port delivered bytes."""
        self.writes: list[int] = []
        """How many calls had been made when a simulated port was written to."""

    @property
    def files(self) -> list[str]:
        """Each file once, in the order of the first call."""
        return list(dict.fromkeys(file for file, _ in self.calls))

    @property
    def switches(self) -> int:
        """How often a call was in another file than the call before."""
        return sum(before != after for (before, _), (after, _) in pairwise(self.calls))

    def without(self, folders: tuple[str, ...]) -> Trace:
        """The calls in files that are in none of these folders."""
        found = Trace()
        found.calls = [call for call in self.calls if not call[0].startswith(folders)]
        return found

    def there_and_back(self, folder: str) -> Trace:
        """From the bytes that led into `folder` to the first bytes that were written after it."""
        entered = next(at for at, (file, _) in enumerate(self.calls) if file.startswith(folder))
        first = max(at for at in self.reads if at <= entered)
        last = next(at for at in self.writes if at > entered)
        found = Trace()
        found.calls = self.calls[first:last]
        return found


def _of_device(frame: FrameType | None) -> bool:
    """Return whether the nearest caller that is no shared code belongs to a device."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(DEVICE):
            return True
        if name.startswith(OURS) and not name.startswith(SHARED):
            return False
        frame = frame.f_back
    return False


@contextmanager
def traced() -> Iterator[Trace]:
    """Trace the calls of this thread, and of threads that start within the block."""
    trace = Trace()
    start = len(f"{ROOT}/")

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        name = frame.f_code.co_filename
        if name == PORTS and frame.f_code.co_name == "write":
            trace.writes.append(len(trace.calls))
        if not name.startswith(OURS) or name.startswith(DEVICE):
            return
        caller = frame.f_back
        if caller and caller.f_code.co_filename == PORTS and caller.f_code.co_name == DELIVERS:
            trace.reads.append(len(trace.calls))
        if name.startswith(SHARED) and _of_device(frame.f_back):
            return
        trace.calls.append((name[start:], frame.f_code.co_name))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
