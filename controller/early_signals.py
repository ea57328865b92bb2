"""Told to stop before there is anything to end: `serve` takes the first signal from its first line
on, while its modules are still loaded. Nothing has been opened then, so that is in good order too.

To be imported before all else, and light for that: what takes long is loaded after it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_former: dict[int, signal._HANDLER] = {}
"""What was there before us."""


def watch(arguments: Sequence[str]) -> None:
    """Where the command is `serve`. `arguments`: as in sys.argv. Main thread only."""
    if list(arguments[1:2]) != ["serve"]:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        found = signal.getsignal(number)
        if found is not signal.SIG_IGN and found is not _ends:
            _former[number] = found
            signal.signal(number, _ends)


def before(number: int, found: signal._HANDLER) -> signal._HANDLER:
    """Who took the signal before anybody served, where `found` took it until now."""
    return _former.get(number) if found is _ends else found


def _ends(number: int, frame: FrameType | None) -> None:
    os._exit(0)


watch(sys.argv)
