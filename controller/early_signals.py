"""Signal handlers for the time before `serve` has started.

SIGTERM and SIGINT exit with 0 while modules are being imported, since nothing is open yet. Must be
imported first, and must stay cheap to import.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

REPLACED: dict[int, signal._HANDLER] = {}
"""The handlers that were replaced, by signal."""


def watch(arguments: Sequence[str]) -> None:
    """Install the handlers if the command is `serve`. `arguments` as in sys.argv; main thread
    only."""
    if list(arguments[1:2]) != ["serve"]:
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        found = signal.getsignal(number)
        if found is not signal.SIG_IGN and found is not _exit:
            REPLACED[number] = found
            signal.signal(number, _exit)


def before(number: int, found: signal._HANDLER) -> signal._HANDLER:
    """The original handler of a signal whose current handler is `found`."""
    return REPLACED.get(number) if found is _exit else found


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(0)


watch(sys.argv)
