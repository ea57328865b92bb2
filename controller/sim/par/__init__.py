"""Par sheets: many rounds, exact figures, reports."""

from __future__ import annotations

from controller.sim.par.simulation import BLOCK, BlockPlayer, ParPlan, ordered_tallies, workers

__all__ = [
    "BLOCK",
    "BlockPlayer",
    "ParPlan",
    "ordered_tallies",
    "workers",
]
