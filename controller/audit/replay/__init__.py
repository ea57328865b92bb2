"""Game events in the record: encode, decode, replay through step()."""

from __future__ import annotations

from controller.audit.replay.entries import (
    DecisionData,
    decode_decision,
    decode_event,
    decode_refusal,
    event_entry,
)
from controller.audit.replay.hole_opening import SealedHoleCard, open_hole_card, sealed_hole_cards
from controller.audit.replay.identity import (
    PROCEDURE,
    identity_of,
    proc_of,
    procedure_of,
    software_name,
    source_hash,
)
from controller.audit.replay.replay import (
    OtherProcedure,
    RecordReplay,
    ReplayMismatch,
    at_rest,
    replay_opening,
)
from controller.audit.replay.tail_approval import TailApproval, UnexplainedBytes

__all__ = [
    "PROCEDURE",
    "DecisionData",
    "OtherProcedure",
    "RecordReplay",
    "ReplayMismatch",
    "SealedHoleCard",
    "TailApproval",
    "UnexplainedBytes",
    "at_rest",
    "decode_decision",
    "decode_event",
    "decode_refusal",
    "event_entry",
    "identity_of",
    "open_hole_card",
    "proc_of",
    "procedure_of",
    "replay_opening",
    "sealed_hole_cards",
    "software_name",
    "source_hash",
]
