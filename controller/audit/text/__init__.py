"""A record as sentences for people."""

from __future__ import annotations

from controller.audit.text.device_events import is_look, is_quiet
from controller.audit.text.records import clock_time, lines, money_of, when

__all__ = [
    "clock_time",
    "is_look",
    "is_quiet",
    "lines",
    "money_of",
    "when",
]
