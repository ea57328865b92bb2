"""Devices of a table: supervisors, outputs, acknowledgement, links."""

from __future__ import annotations

from controller.table.devices.assembly import Fittings
from controller.table.devices.links import START_WAIT, data_of
from controller.table.devices.retry import Mending

__all__ = [
    "START_WAIT",
    "Fittings",
    "Mending",
    "data_of",
]
