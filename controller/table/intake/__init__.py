"""From device events to the table: readers, the snapshot of the table, and its pure step."""

from __future__ import annotations

from controller.table.intake.apply import (
    AppliedInput,
    Applier,
    EventAnswer,
    device_input,
    face_down,
)
from controller.table.intake.context import (
    CONTROLLER,
    DeviceSettings,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
    plain_value,
)
from controller.table.intake.shoe import card_destination, turned_entry, turned_face_up
from controller.table.intake.shuffler import WORKING, by_hand

__all__ = [
    "CONTROLLER",
    "WORKING",
    "AppliedInput",
    "Applier",
    "DeviceSettings",
    "DeviceSource",
    "EventAnswer",
    "IntakeContext",
    "TableInput",
    "TableSnapshot",
    "by_hand",
    "card_destination",
    "device_input",
    "face_down",
    "plain_value",
    "turned_entry",
    "turned_face_up",
]
