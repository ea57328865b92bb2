"""Game events in the record: encode, decode, replay through step()."""

from __future__ import annotations

from controller.audit.replay.entries import (
    EFFECTS,
    DecisionData,
    decode_decision,
    decode_event,
    decode_refusal,
    event_entry,
    record_actor,
    without_actor,
)
from controller.audit.replay.hole_opening import (
    KeyDoesNotOpen,
    SealedHoleCard,
    open_hole_card,
    sealed_hole_cards,
)
from controller.audit.replay.identity import (
    game_from,
    identity_of,
    proc_of,
    procedure_of,
    software_name,
    terms_of,
)
from controller.audit.replay.replay import (
    OtherProcedure,
    RecordReplay,
    ReplayMismatch,
    ReplayResult,
    at_rest,
    other_code_state,
    other_code_state_after,
    replay_opening,
)
from controller.audit.replay.tail_approval import TailApproval, UnexplainedBytes

__all__ = [
    "EFFECTS",
    "DecisionData",
    "KeyDoesNotOpen",
    "OtherProcedure",
    "RecordReplay",
    "ReplayMismatch",
    "ReplayResult",
    "SealedHoleCard",
    "TailApproval",
    "UnexplainedBytes",
    "at_rest",
    "decode_decision",
    "decode_event",
    "decode_refusal",
    "event_entry",
    "game_from",
    "identity_of",
    "open_hole_card",
    "other_code_state",
    "other_code_state_after",
    "proc_of",
    "procedure_of",
    "record_actor",
    "replay_opening",
    "sealed_hole_cards",
    "software_name",
    "terms_of",
    "without_actor",
]
