"""Builds, starts and stops a running table, and monitors its witness."""

from __future__ import annotations

from controller.table.running.table import RunningTable
from controller.table.running.witness_monitor import WitnessMonitor

__all__ = [
    "RunningTable",
    "WitnessMonitor",
]
