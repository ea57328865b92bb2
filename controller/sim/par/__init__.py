"""Par sheets: many rounds, exact figures, reports."""

from __future__ import annotations

from controller.sim.par.simulation import BLOCK, Plan, Player, handed_out, workers

__all__ = [
    "BLOCK",
    "Plan",
    "Player",
    "handed_out",
    "workers",
]
