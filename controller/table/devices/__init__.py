"""Devices of a table: supervisors, links, outputs, lamps."""

from __future__ import annotations

from controller.table.devices.assembly import StoreRetry, TableDevices
from controller.table.devices.links import CATCH_UP_TIMEOUT, data_of
from controller.table.devices.stalls import LoopMonitor

__all__ = [
    "CATCH_UP_TIMEOUT",
    "LoopMonitor",
    "StoreRetry",
    "TableDevices",
    "data_of",
]
