"""Builds, starts and stops a running table, and monitors its witness and its disk."""

from __future__ import annotations

from controller.table.running.space_monitor import SpaceMonitor, bytes_an_hour
from controller.table.running.table import RunningTable
from controller.table.running.witness_monitor import WitnessMonitor

__all__ = [
    "RunningTable",
    "SpaceMonitor",
    "WitnessMonitor",
    "bytes_an_hour",
]
