"""Simulated mechanisms of shoe, shuffler and station, and the cards in them."""

from __future__ import annotations

from hil.devices.card_names import names_of, new_decks, shuffled
from hil.devices.classes import CLASSES, SimulatedClass, class_of
from hil.devices.shoe import SimulatedShoe
from hil.devices.shuffler import SimulatedShuffler
from hil.devices.station import SimulatedStation

__all__ = [
    "CLASSES",
    "SimulatedClass",
    "SimulatedShoe",
    "SimulatedShuffler",
    "SimulatedStation",
    "class_of",
    "names_of",
    "new_decks",
    "shuffled",
]
