"""Simulated mechanisms: shoe, shuffler, station."""

from __future__ import annotations

from hil.devices.shoe import SimulatedShoe
from hil.devices.shuffler import SimulatedShuffler
from hil.devices.station import SimulatedStation

__all__ = [
    "SimulatedShoe",
    "SimulatedShuffler",
    "SimulatedStation",
]
