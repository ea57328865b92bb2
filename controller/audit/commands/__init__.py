"""What the commands of `holecard audit` do, one module for each or a few."""

from __future__ import annotations

from controller.audit.commands.common import index_progress, table_key_of

__all__ = [
    "index_progress",
    "table_key_of",
]
