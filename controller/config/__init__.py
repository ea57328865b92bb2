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
from controller.config.loader import (
    DEFAULT,
    MAX_SEATS,
    NOTHING,
    Currency,
    GameSheet,
    TableConfig,
    load_game,
    load_jurisdiction,
    load_table,
    parse_game,
    parse_table,
)
from controller.config.options import (
    LEAVES,
    OPTION_TEXT,
    SET,
    TAKEN_AWAY,
    OptionOrigin,
    add_settings,
    flat,
    read_settings,
    written,
)

__all__ = [
    "DEFAULT",
    "LEAVES",
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
