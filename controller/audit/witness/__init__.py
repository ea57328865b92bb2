"""External witnesses: countersigning, archive, monitoring."""

from __future__ import annotations

from controller.audit.witness.cosignatures import COSIGNED
from controller.audit.witness.monitor import (
    WitnessReport,
    WitnessState,
    check_witnesses,
    cosigned_checkpoints,
    recorded_state,
)

__all__ = [
    "COSIGNED",
    "WitnessReport",
    "WitnessState",
    "check_witnesses",
    "cosigned_checkpoints",
    "recorded_state",
]
