"""Full verification of a record."""

from __future__ import annotations

from controller.audit.verify.cosignatures import SeenCheckpoint, seen_by_witness
from controller.audit.verify.decisions import event_type
from controller.audit.verify.facts import VerifiedSegment, VerifyScope
from controller.audit.verify.finding import RecordFinding
from controller.audit.verify.hole_cards import FACE_DOWN_EVENTS, FaceDownDecision, HoleCardTracker
from controller.audit.verify.segment import verify_segment
from controller.audit.verify.verifier import (
    INCOMPLETE,
    INVALID,
    VALID,
    Verification,
    VerifyProgress,
    VerifyReport,
)

__all__ = [
    "FACE_DOWN_EVENTS",
    "INCOMPLETE",
    "INVALID",
    "VALID",
    "FaceDownDecision",
    "HoleCardTracker",
    "RecordFinding",
    "SeenCheckpoint",
    "Verification",
    "VerifiedSegment",
    "VerifyProgress",
    "VerifyReport",
    "VerifyScope",
    "event_type",
    "seen_by_witness",
    "verify_segment",
]
