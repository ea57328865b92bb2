"""Full verification of a record."""

from __future__ import annotations

from controller.audit.verify.decisions import FACE_DOWN_EVENTS, HoleCardTracker, event_type
from controller.audit.verify.facts import (
    FaceDownDecision,
    RecordFinding,
    VerifiedSegment,
    VerifyScope,
)
from controller.audit.verify.segment import verify_segment
from controller.audit.verify.side_files import (
    InvalidWitnessNote,
    WitnessedCheckpoint,
    seen_by_witness,
)
from controller.audit.verify.verifier import (
    INCOMPLETE,
    INVALID,
    VALID,
    VerifyProgress,
    VerifyReport,
    verify,
)

__all__ = [
    "FACE_DOWN_EVENTS",
    "INCOMPLETE",
    "INVALID",
    "VALID",
    "FaceDownDecision",
    "HoleCardTracker",
    "InvalidWitnessNote",
    "RecordFinding",
    "VerifiedSegment",
    "VerifyProgress",
    "VerifyReport",
    "VerifyScope",
    "WitnessedCheckpoint",
    "event_type",
    "seen_by_witness",
    "verify",
    "verify_segment",
]
