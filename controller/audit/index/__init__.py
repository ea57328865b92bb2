"""SQLite index of a record; can be rebuilt at any time."""

from __future__ import annotations

from controller.audit.index.entries import NOT_UNDERSTOOD
from controller.audit.index.file import NAME, told
from controller.audit.index.index import Index, Progress, goes_on, to_read
from controller.audit.index.query import LONGEST, Page, Round, find, find_rounds
from controller.audit.index.search_terms import Wanted, amount_of, amounts_of, check, time_of
from controller.audit.index.sql import Answer, ask

__all__ = [
    "LONGEST",
    "NAME",
    "NOT_UNDERSTOOD",
    "Answer",
    "Index",
    "Page",
    "Progress",
    "Round",
    "Wanted",
    "amount_of",
    "amounts_of",
    "ask",
    "check",
    "find",
    "find_rounds",
    "goes_on",
    "time_of",
    "to_read",
    "told",
]
