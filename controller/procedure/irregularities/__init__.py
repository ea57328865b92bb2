"""The rows of irregularities: holds, rulings, and how a hold is released."""

from __future__ import annotations

from typing import Final

from controller.procedure.irregularities import (
    release,
    rulings,
    stops,
    wrong_card,
)
from controller.procedure.model.row import Refusal, Row

__all__ = ["REFUSALS", "ROWS"]

_MODULES: Final = (wrong_card, stops, rulings, release)
"""In the order in which their rows are tried."""

ROWS: Final[tuple[Row, ...]] = tuple(row for module in _MODULES for row in module.ROWS)
REFUSALS: Final[tuple[Refusal, ...]] = tuple(ref for module in _MODULES for ref in module.REFUSALS)
