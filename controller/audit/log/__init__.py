"""Writing a record: append, group commit, checkpoint, opening, quarantine."""

from __future__ import annotations

from controller.audit.log.checkpoints import unsigned_faults
from controller.audit.log.clock import STEP_US, Clock, Day, SystemClock, gaming_day
from controller.audit.log.log import Log, RecordRoom
from controller.audit.log.opening import COSIGNED, TAILS, RecordOpening, quarantined_files
from controller.audit.log.writer import LogWriter, Together

__all__ = [
    "COSIGNED",
    "STEP_US",
    "TAILS",
    "Clock",
    "Day",
    "Log",
    "LogWriter",
    "RecordOpening",
    "RecordRoom",
    "SystemClock",
    "Together",
    "gaming_day",
    "quarantined_files",
    "unsigned_faults",
]
