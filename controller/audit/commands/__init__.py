"""`holecard audit ...`."""

from __future__ import annotations

from controller.audit.commands.common import given_table, path_of, say, text_of
from controller.audit.commands.index import progress
from controller.audit.commands.verify import words

__all__ = [
    "given_table",
    "path_of",
    "progress",
    "say",
    "text_of",
    "words",
]
