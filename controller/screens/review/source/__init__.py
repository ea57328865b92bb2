"""Sources of a review: the record, its index, background work."""

from __future__ import annotations

from controller.screens.review.source.context import (
    ReviewContext,
    TableInfo,
    open_index,
    recorded_look,
    round_not_found,
)
from controller.screens.review.source.live_source import LiveSource
from controller.screens.review.source.loop_bridge import LoopBridge
from controller.screens.review.source.source import FileSource, open_source

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
