"""The row table and the two engines that step through it."""

from __future__ import annotations

from controller.procedure.engine.dispatch import Procedure, rows_of
from controller.procedure.engine.row_table import EVENTS, REFUSALS, RowFault
from controller.procedure.engine.state_machine import LiveTable

__all__ = [
    "EVENTS",
    "REFUSALS",
    "LiveTable",
    "Procedure",
    "RowFault",
    "rows_of",
]
