"""The rows of a round without irregularities, in the order of play."""

from __future__ import annotations

from typing import Final

from controller.procedure.model.row import Refusal, Row
from controller.procedure.rows import (
    actors,
    deal,
    dealer,
    insurance,
    table,
    turn,
    wagers,
)
from controller.procedure.rows.deal import mark_naturals
from controller.procedure.rows.dealer import agrees_with_check, hole_card, hole_is_fresh
from controller.procedure.rows.insurance import max_insurance, may_take_even_money, seat_asked
from controller.procedure.rows.table import (
    BETWEEN,
    another_round,
    burned,
    burned_one,
    complete,
    fresh_felt,
    last_to_burn,
    more_to_burn,
    no_shoe,
    no_shuffler,
    shut,
    whole_shoe,
)
from controller.procedure.rows.wagers import closed_to_this_round

__all__ = [
    "BETWEEN",
    "REFUSALS",
    "ROWS",
    "agrees_with_check",
    "another_round",
    "burned",
    "burned_one",
    "closed_to_this_round",
    "complete",
    "fresh_felt",
    "hole_card",
    "hole_is_fresh",
    "last_to_burn",
    "mark_naturals",
    "max_insurance",
    "may_take_even_money",
    "more_to_burn",
    "no_shoe",
    "no_shuffler",
    "seat_asked",
    "shut",
    "whole_shoe",
]

_MODULES: Final = (actors, table, wagers, deal, insurance, turn, dealer)
"""In the order in which their rows are tried."""

ROWS: Final[tuple[Row, ...]] = tuple(row for module in _MODULES for row in module.ROWS)
REFUSALS: Final[tuple[Refusal, ...]] = tuple(ref for module in _MODULES for ref in module.REFUSALS)
