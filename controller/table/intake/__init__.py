"""Device events become table events: the only place that knows both vocabularies."""

from __future__ import annotations

from controller.table.intake.apply import AppliedInput, Applier, EventAnswer, face_down
from controller.table.intake.context import (
    CONTROLLER,
    DeviceSettings,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from controller.table.intake.gateway import device_input
from controller.table.intake.shoe import (
    back_suspicions,
    card_destination,
    card_suspicions,
    card_turned,
    doubt_of,
    is_duplicate,
)
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
    "back_suspicions",
    "by_hand",
    "card_destination",
    "card_suspicions",
    "card_turned",
    "device_input",
    "doubt_of",
    "face_down",
    "is_duplicate",
]
