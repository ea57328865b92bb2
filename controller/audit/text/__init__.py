"""A record as sentences for people."""

from __future__ import annotations

from controller.audit.text.device_events import is_access, is_quiet
from controller.audit.text.records import currency_of, format_clock, format_time, record_lines

__all__ = [
    "currency_of",
    "format_clock",
    "format_time",
    "is_access",
    "is_quiet",
    "record_lines",
]
