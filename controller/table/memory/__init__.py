"""What a table knows beside the procedure's state; pure."""

from __future__ import annotations

from controller.table.memory.button_tokens import NO_ARMS, NO_BUTTONS, Arms, armed
from controller.table.memory.device_faults import NO_TROUBLES, Cause, Trouble, Troubles, due
from controller.table.memory.display import (
    NOT_LOOKED,
    Shown,
    Witness,
    beneath,
    payment_prompt,
    prompt_of,
)
from controller.table.memory.inventory import closes, entry_of, inventory, suspicions
from controller.table.memory.memory import NOTHING_KNOWN, Face, Recall, Suspicion, recalled
from controller.table.memory.vault import NotInVault, Vault

__all__ = [
    "NOTHING_KNOWN",
    "NOT_LOOKED",
    "NO_ARMS",
    "NO_BUTTONS",
    "NO_TROUBLES",
    "Arms",
    "Cause",
    "Face",
    "NotInVault",
    "Recall",
    "Shown",
    "Suspicion",
    "Trouble",
    "Troubles",
    "Vault",
    "Witness",
    "armed",
    "beneath",
    "closes",
    "due",
    "entry_of",
    "inventory",
    "payment_prompt",
    "prompt_of",
    "recalled",
    "suspicions",
]
