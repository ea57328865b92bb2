"""What a table stores beside the procedure's state; pure."""

from __future__ import annotations

from controller.table.memory.device_faults import (
    NO_FAULTS,
    DeviceFault,
    DeviceFaults,
    FaultCause,
    next_report,
)
from controller.table.memory.display import (
    NO_BUTTONS,
    NO_TOKENS,
    NO_WITNESS,
    SPACE_LEFT,
    ButtonTokens,
    SeatButtons,
    SpaceStatus,
    TableDisplay,
    WitnessStatus,
    payment_prompt,
    prompt_of,
    without_holds,
)
from controller.table.memory.memory import (
    EMPTY_MEMORY,
    SeenCard,
    Suspicion,
    TableMemory,
    count_loading,
    deck_suspicions,
    inventory_entry,
    memory_from,
)
from controller.table.memory.vault import CardVault, NotInVault

__all__ = [
    "EMPTY_MEMORY",
    "NO_BUTTONS",
    "NO_FAULTS",
    "NO_TOKENS",
    "NO_WITNESS",
    "SPACE_LEFT",
    "ButtonTokens",
    "CardVault",
    "DeviceFault",
    "DeviceFaults",
    "FaultCause",
    "NotInVault",
    "SeatButtons",
    "SeenCard",
    "SpaceStatus",
    "Suspicion",
    "TableDisplay",
    "TableMemory",
    "WitnessStatus",
    "count_loading",
    "deck_suspicions",
    "inventory_entry",
    "memory_from",
    "next_report",
    "payment_prompt",
    "prompt_of",
    "without_holds",
]
