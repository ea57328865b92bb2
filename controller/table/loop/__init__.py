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
from controller.table.loop.loop import (
    ANOTHER_CARD,
    DeviceRecordStore,
    InputFactory,
    InputRejected,
    LoopStart,
    QueueFull,
    RequestResult,
    StoredPosition,
    TableClosing,
    TableLoop,
    TableStopped,
)
from controller.table.loop.parts import (
    REAL_ENVIRONMENT,
    DeviceConfig,
    RecordWriter,
    TableEnvironment,
    TableParts,
    load_keys,
    parts_of,
    required_section,
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
    "InputFactory",
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
    "kind_of",
    "load_keys",
    "parts_of",
    "read_act",
    "required_section",
]
