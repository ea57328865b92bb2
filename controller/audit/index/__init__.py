"""The SQLite index of a record. It can be rebuilt at any time."""

from __future__ import annotations

from controller.audit.index.entries import NOT_UNDERSTOOD
from controller.audit.index.index import (
    NAME,
    Index,
    IndexProgress,
    has_more,
    open_index,
    sqlite_errors,
)
from controller.audit.index.query import (
    MAX_PAGE,
    RecordPage,
    RecordQuery,
    RoundRow,
    check_query,
    find,
    find_rounds,
    parse_amount,
    parse_amounts,
    parse_time,
)
from controller.audit.index.sql import SqlAnswer, run_sql

__all__ = [
    "MAX_PAGE",
    "NAME",
    "NOT_UNDERSTOOD",
    "Index",
    "IndexProgress",
    "RecordPage",
    "RecordQuery",
    "RoundRow",
    "SqlAnswer",
    "check_query",
    "find",
    "find_rounds",
    "has_more",
    "open_index",
    "parse_amount",
    "parse_amounts",
    "parse_time",
    "run_sql",
    "sqlite_errors",
]
