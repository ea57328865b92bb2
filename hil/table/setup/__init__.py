"""A simulated house with its devices and the daemon as a child process."""

from __future__ import annotations

from hil.table.setup.daemon import DidNotServe, until
from hil.table.setup.house import (
    DEALER,
    FEW,
    FLOOR,
    GUEST,
    SECOND,
    STAFF,
    STAFF_AND_VISITORS,
    FittedDevice,
    RobotBadge,
)
from hil.table.setup.stage import Stage, TableContent, example, scripted, staged

__all__ = [
    "DEALER",
    "FEW",
    "FLOOR",
    "GUEST",
    "SECOND",
    "STAFF",
    "STAFF_AND_VISITORS",
    "DidNotServe",
    "FittedDevice",
    "RobotBadge",
    "Stage",
    "TableContent",
    "example",
    "scripted",
    "staged",
    "until",
]
