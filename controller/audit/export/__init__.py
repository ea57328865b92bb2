"""Sealed cases, row exports, retirement of old days."""

from __future__ import annotations

from controller.audit.export.case import SealedCase, export_case
from controller.audit.export.case_folder import (
    MANIFEST,
    CaseCheck,
    Manifest,
    check_case,
    check_free,
)
from controller.audit.export.retire import retire_segments
from controller.audit.export.rows import RowFormat, record_rows, time_text, write_rows

__all__ = [
    "MANIFEST",
    "CaseCheck",
    "Manifest",
    "RowFormat",
    "SealedCase",
    "check_case",
    "check_free",
    "export_case",
    "record_rows",
    "retire_segments",
    "time_text",
    "write_rows",
]
