"""What else plays scripted rounds: the entry points for `holecard script run --over NAME`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

GROUP: Final = "holecard.overs"


def overs() -> dict[str, EntryPoint]:
    """The entry points that installed packages announce, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}
