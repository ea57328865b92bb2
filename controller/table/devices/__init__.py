"""Devices of a table: supervisors, outputs, acknowledgement, links."""

from __future__ import annotations

from controller.table.devices.assembly import StoreRetry, TableDevices
from controller.table.devices.links import CATCH_UP_TIMEOUT, data_of

__all__ = [
    "CATCH_UP_TIMEOUT",
    "StoreRetry",
    "TableDevices",
    "data_of",
]
