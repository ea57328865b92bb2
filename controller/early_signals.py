"""Signal handlers for the time before a command has started, and after it has ended.

While modules are being imported nothing is open yet: SIGTERM and SIGINT exit `serve` with 0, and
SIGINT ends other commands without a traceback. Must be imported first, and must stay cheap to
import.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_PROGRAMS = ("holecard", "cli.py")
REPLACED: dict[int, signal._HANDLER] = {}
"""The handlers that were replaced, by signal."""


def watch(arguments: Sequence[str]) -> None:
    """Install the handlers. `arguments` as in sys.argv; main thread only."""
    if list(arguments[1:2]) != ["serve"]:
        if os.path.basename(arguments[0]) in _PROGRAMS:
            end_at_interrupts()
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        found = signal.getsignal(number)
        if found is not signal.SIG_IGN and found is not _exit:
            REPLACED[number] = found
            signal.signal(number, _exit)


def end_at_interrupts() -> None:
    """From now on SIGINT ends the process at once, if it is not ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_interrupts() -> None:
    """From now on SIGINT raises KeyboardInterrupt, if it is not ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def before(number: int, found: signal._HANDLER) -> signal._HANDLER:
    """The original handler of a signal whose current handler is `found`."""
    return REPLACED.get(number) if found is _exit else found


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(0)


watch(sys.argv)
