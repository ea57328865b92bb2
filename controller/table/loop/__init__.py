"""The table loop: one queue, one consumer, the only writer of state."""

from __future__ import annotations

from controller.table.loop.acts import (
    BY_PEOPLE,
    BY_VAULT,
    BadAct,
    MovedOn,
    NotTheirTurn,
    kind_of,
    read_act,
)
from controller.table.loop.handover import deals_after, relief, relieves
from controller.table.loop.loop import Table
from controller.table.loop.parts import REAL, Fitted, Parts, World, Writing
from controller.table.loop.record_store import RecordKeeper, Stood
from controller.table.loop.requests import (
    ANOTHER_CARD,
    CannotTake,
    Cases,
    Closing,
    Done,
    Full,
    Start,
    Stopped,
)

__all__ = [
    "ANOTHER_CARD",
    "BY_PEOPLE",
    "BY_VAULT",
    "REAL",
    "BadAct",
    "CannotTake",
    "Cases",
    "Closing",
    "Done",
    "Fitted",
    "Full",
    "MovedOn",
    "NotTheirTurn",
    "Parts",
    "RecordKeeper",
    "Start",
    "Stood",
    "Stopped",
    "Table",
    "World",
    "Writing",
    "deals_after",
    "kind_of",
    "read_act",
    "relief",
    "relieves",
]
