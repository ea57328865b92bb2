"""The record as text for people: one wording for the terminal and for the review's pages."""

from __future__ import annotations

from controller.audit.text.records import currency_of, record_text
from controller.audit.text.timeline import (
    TimelineLine,
    problem_words,
    timeline_line,
    timeline_lines,
)
from controller.audit.text.times import (
    format_clock,
    format_day,
    format_time,
    minutes_words,
    stamp,
)
from controller.audit.text.verify_report import VERDICTS, verify_report_lines

__all__ = [
    "VERDICTS",
    "TimelineLine",
    "currency_of",
    "format_clock",
    "format_day",
    "format_time",
    "minutes_words",
    "problem_words",
    "record_text",
    "stamp",
    "timeline_line",
    "timeline_lines",
    "verify_report_lines",
]
