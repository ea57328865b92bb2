"""Game events in the record: encode, decode, replay through step()."""

from __future__ import annotations

from controller.audit.replay.entries import Made, entry, read_made, read_said, read_turned_down
from controller.audit.replay.hole_opening import Hole, holes_of, open_hole
from controller.audit.replay.identity import (
    PROCEDURE,
    identity_of,
    proc_of,
    procedure_of,
    software_name,
    source_hash,
)
from controller.audit.replay.replay import Disagrees, OtherProcedure, Replay, at_rest, fold
from controller.audit.replay.tail_approval import Acceptance, Bytes

__all__ = [
    "PROCEDURE",
    "Acceptance",
    "Bytes",
    "Disagrees",
    "Hole",
    "Made",
    "OtherProcedure",
    "Replay",
    "at_rest",
    "entry",
    "fold",
    "holes_of",
    "identity_of",
    "open_hole",
    "proc_of",
    "procedure_of",
    "read_made",
    "read_said",
    "read_turned_down",
    "software_name",
    "source_hash",
]
