"""Records of scripted and simulated rounds."""

from __future__ import annotations

from controller.audit.simulate.recorder import Keyring, Recorder, RecorderKeys
from controller.audit.simulate.rounds import (
    PAR,
    SCRIPTS,
    SCRIPTS_SIZE,
    check_recordable,
    plain_round,
    play_recorded,
    record_par,
)
from controller.audit.simulate.vault import CardSource, RecordingVault

__all__ = [
    "PAR",
    "SCRIPTS",
    "SCRIPTS_SIZE",
    "CardSource",
    "Keyring",
    "Recorder",
    "RecorderKeys",
    "RecordingVault",
    "check_recordable",
    "plain_round",
    "play_recorded",
    "record_par",
]
