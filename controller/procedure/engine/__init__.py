"""The row table and the two engines that evaluate it."""

from __future__ import annotations

from controller.procedure.engine.dispatch import (
    EVENTS,
    REFUSAL_TEXTS,
    REFUSALS,
    Procedure,
    RowFault,
    refusal_name,
    rows_of,
)
from controller.procedure.engine.state_machine import LiveTable

__all__ = [
    "EVENTS",
    "REFUSALS",
    "REFUSAL_TEXTS",
    "LiveTable",
    "Procedure",
    "RowFault",
    "refusal_name",
    "rows_of",
]
