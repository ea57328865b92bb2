"""Writing a record: append, group commit, checkpoint, opening, quarantine."""

from __future__ import annotations

from controller.audit.log.checkpoints import in_doubt
from controller.audit.log.clock import STEP_US, Clock, Day, SystemClock, gaming_day
from controller.audit.log.log import Log
from controller.audit.log.opening import COSIGNED, Opening
from controller.audit.log.quarantine import TAILS, aside
from controller.audit.log.writer import Book

__all__ = [
    "COSIGNED",
    "STEP_US",
    "TAILS",
    "Book",
    "Clock",
    "Day",
    "Log",
    "Opening",
    "SystemClock",
    "aside",
    "gaming_day",
    "in_doubt",
]
