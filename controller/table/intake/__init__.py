"""Device events become table events: the only place that knows both vocabularies."""

from __future__ import annotations

from controller.table.intake.apply import Answered, Taken, Taking, face_down
from controller.table.intake.context import CONTROLLER, Ear, Heard, House, Now, Source
from controller.table.intake.gateway import hear
from controller.table.intake.shoe import backs, called_twin, doubtful, opened, suspicions, takes
from controller.table.intake.shuffler import WORKING, by_hand

__all__ = [
    "CONTROLLER",
    "WORKING",
    "Answered",
    "Ear",
    "Heard",
    "House",
    "Now",
    "Source",
    "Taken",
    "Taking",
    "backs",
    "by_hand",
    "called_twin",
    "doubtful",
    "face_down",
    "hear",
    "opened",
    "suspicions",
    "takes",
]
