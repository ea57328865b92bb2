"""Sources of a review: the record, its index, background work."""

from __future__ import annotations

from controller.screens.review.source.context import (
    ReviewContext,
    TableInfo,
    open_index,
    recorded_look,
    round_not_found,
)
from controller.screens.review.source.source import FileSource, LiveSource, LoopBridge, open_source

__all__ = [
    "FileSource",
    "LiveSource",
    "LoopBridge",
    "ReviewContext",
    "TableInfo",
    "open_index",
    "open_source",
    "recorded_look",
    "round_not_found",
]
