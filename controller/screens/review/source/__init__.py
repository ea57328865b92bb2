"""Where a review's rounds come from, and its background work."""

from __future__ import annotations

from controller.screens.review.source.context import House, Table, asked, looking, no_round
from controller.screens.review.source.live_source import Running
from controller.screens.review.source.loop_bridge import Loop
from controller.screens.review.source.source import Beside, Source, beside

__all__ = [
    "Beside",
    "House",
    "Loop",
    "Running",
    "Source",
    "Table",
    "asked",
    "beside",
    "looking",
    "no_round",
]
