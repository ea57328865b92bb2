"""Full verification of a record."""

from __future__ import annotations

from controller.audit.verify.cosignatures import Sighting, given
from controller.audit.verify.decisions import event_of
from controller.audit.verify.facts import Verified, Wanted
from controller.audit.verify.finding import Finding
from controller.audit.verify.hole_cards import HIDDEN, Hidden, Holes
from controller.audit.verify.segment import verify_segment
from controller.audit.verify.verifier import PARTLY, RIGHT, WRONG, Progress, Report, Verification

__all__ = [
    "HIDDEN",
    "PARTLY",
    "RIGHT",
    "WRONG",
    "Finding",
    "Hidden",
    "Holes",
    "Progress",
    "Report",
    "Sighting",
    "Verification",
    "Verified",
    "Wanted",
    "event_of",
    "given",
    "verify_segment",
]
