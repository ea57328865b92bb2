"""Opening the record and restoring the table after a start."""

from __future__ import annotations

from controller.table.restart.reread_cards import CardRereader
from controller.table.restart.restore import MAX_BEHIND, RestoredTable, open_record

__all__ = [
    "MAX_BEHIND",
    "CardRereader",
    "RestoredTable",
    "open_record",
]
