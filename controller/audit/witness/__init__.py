"""External witnesses: cosigning, archive, monitoring."""

from __future__ import annotations

from controller.audit.witness.cosignatures import (
    COSIGNED,
    WitnessReport,
    WitnessState,
    check_witnesses,
    cosigned_checkpoints,
    recorded_state,
    store_notes,
)
from controller.audit.witness.witness import CosignedNote, WitnessedRecord, cosign_record

__all__ = [
    "COSIGNED",
    "CosignedNote",
    "WitnessReport",
    "WitnessState",
    "WitnessedRecord",
    "check_witnesses",
    "cosign_record",
    "cosigned_checkpoints",
    "recorded_state",
    "store_notes",
]
