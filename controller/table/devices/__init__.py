"""Devices of a table: supervisors, outputs, acknowledgement, links."""

from __future__ import annotations

from controller.table.devices.assembly import Fittings
from controller.table.devices.links import START_WAIT, data_of
from controller.table.devices.retry import StoreRetry

__all__ = [
    "START_WAIT",
    "Fittings",
    "StoreRetry",
    "data_of",
]
