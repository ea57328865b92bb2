"""Opening the record and restoring the table after a start."""

from __future__ import annotations

from controller.table.restart.opening import MOST_BEHIND, open_record
from controller.table.restart.reread_cards import Relearning
from controller.table.restart.restore import Recovered

__all__ = [
    "MOST_BEHIND",
    "Recovered",
    "Relearning",
    "open_record",
]
