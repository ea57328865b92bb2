"""A simulated house with its devices and the daemon as a child process."""

from __future__ import annotations

from hil.table.setup.daemon import DidNotServe, until
from hil.table.setup.house import (
    DEALER,
    EVERYBODY,
    FEW,
    FLOOR,
    GUEST,
    SECOND,
    VISITED,
    Fitted,
    Robotic,
)
from hil.table.setup.stage import Stage, staged
from hil.table.setup.table_file import Deals, example, scripted

__all__ = [
    "DEALER",
    "EVERYBODY",
    "FEW",
    "FLOOR",
    "GUEST",
    "SECOND",
    "VISITED",
    "Deals",
    "DidNotServe",
    "Fitted",
    "Robotic",
    "Stage",
    "example",
    "scripted",
    "staged",
    "until",
]
