"""Entry points that play scripted rounds: `holecard script run --over NAME`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

GROUP: Final = "holecard.overs"


def overs() -> dict[str, EntryPoint]:
    """Returns the entry points of installed packages, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}
