"""Simulated mechanisms: shoe, shuffler, station."""

from __future__ import annotations

from hil.devices.shoe import Shoe
from hil.devices.shuffler import Shuffler
from hil.devices.station import Station

__all__ = [
    "Shoe",
    "Shuffler",
    "Station",
]
