"""Loads a file of any kind: a game, a table or a jurisdiction, by name or by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from controller.config import files
from controller.config.jurisdictions import (
    JurisdictionFile,
    load_jurisdiction,
    parse_jurisdiction,
)
from controller.config.option_layers import OptionOrigin
from controller.config.sheets import NOTHING, OVERRIDES, GameSheet, load_game, parse_game
from controller.config.tables import Currency, TableConfig, load_table, parse_table
from controller.errors import printable

__all__ = [
    "Anything",
    "Currency",
    "GameSheet",
    "JurisdictionFile",
    "OptionOrigin",
    "TableConfig",
    "load",
    "load_game",
    "load_jurisdiction",
    "load_table",
]

Anything: TypeAlias = GameSheet | TableConfig | JurisdictionFile


def load(
    name: str,
    overrides: Mapping[str, object] = NOTHING,
    *,
    overrides_from: str = OVERRIDES,
) -> Anything:
    """Load a game by name, or a file of any kind. Raises UsageProblem."""
    document = files.read_named("game", name, printable(name))
    match files.kind_of(document):
        case "game":
            return parse_game(document, overrides, overrides_from=overrides_from)
        case "table":
            return parse_table(document, overrides, overrides_from)
        case "jurisdiction":
            return parse_jurisdiction(document)
