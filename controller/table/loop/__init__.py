"""The table loop: one queue, one consumer, the only writer of state."""

from __future__ import annotations

from controller.table.loop.acts import (
    BY_PEOPLE,
    BY_VAULT,
    BadAct,
    CaseChanged,
    NotDealing,
    kind_of,
    read_act,
)
from controller.table.loop.handover import dealer_after, is_relief, relief_input
from controller.table.loop.loop import DeviceRecordStore, StoredPosition, TableLoop
from controller.table.loop.parts import (
    REAL_ENVIRONMENT,
    DeviceConfig,
    RecordWriter,
    TableEnvironment,
    TableParts,
)
from controller.table.loop.requests import (
    ANOTHER_CARD,
    HoldNames,
    InputRejected,
    LoopStart,
    QueueFull,
    RequestResult,
    TableClosing,
    TableStopped,
)

__all__ = [
    "ANOTHER_CARD",
    "BY_PEOPLE",
    "BY_VAULT",
    "REAL_ENVIRONMENT",
    "BadAct",
    "CaseChanged",
    "DeviceConfig",
    "DeviceRecordStore",
    "HoldNames",
    "InputRejected",
    "LoopStart",
    "NotDealing",
    "QueueFull",
    "RecordWriter",
    "RequestResult",
    "StoredPosition",
    "TableClosing",
    "TableEnvironment",
    "TableLoop",
    "TableParts",
    "TableStopped",
    "dealer_after",
    "is_relief",
    "kind_of",
    "read_act",
    "relief_input",
]
