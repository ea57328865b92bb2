"""Game sheets, table files and jurisdictions: loaded, validated and explained."""

from __future__ import annotations

from controller.config.equipment import (
    ControlPlace,
    DevicePlace,
    DevicePlaces,
    Equipment,
    RecordPlace,
    ScreensPlace,
    read_equipment,
)
from controller.config.files import expect, installed, kind_of, read_named
from controller.config.jurisdictions import DEFAULT
from controller.config.loader import (
    GameSheet,
    OptionOrigin,
    TableConfig,
    load_game,
    load_jurisdiction,
    load_table,
)
from controller.config.option_layers import flat
from controller.config.option_paths import TAKEN_AWAY
from controller.config.option_texts import OPTION_TEXT, SET, add_settings, read_settings, written
from controller.config.sheets import NOTHING, parse_game
from controller.config.tables import MAX_SEATS, Currency, parse_table

__all__ = [
    "DEFAULT",
    "MAX_SEATS",
    "NOTHING",
    "OPTION_TEXT",
    "SET",
    "TAKEN_AWAY",
    "ControlPlace",
    "Currency",
    "DevicePlace",
    "DevicePlaces",
    "Equipment",
    "GameSheet",
    "OptionOrigin",
    "RecordPlace",
    "ScreensPlace",
    "TableConfig",
    "add_settings",
    "expect",
    "flat",
    "installed",
    "kind_of",
    "load_game",
    "load_jurisdiction",
    "load_table",
    "parse_game",
    "parse_table",
    "read_equipment",
    "read_named",
    "read_settings",
    "written",
]
