"""Records of scripted and simulated rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.lazy_door import lazy_door

if TYPE_CHECKING:
    from controller.audit.simulate.recorder import (
        CardSource,
        Keyring,
        Recorder,
        RecorderKeys,
        RecordingVault,
    )
    from controller.audit.simulate.rounds import (
        PAR,
        SCRIPTS,
        SCRIPTS_SIZE,
        check_recordable,
        plain_round,
        play_recorded,
        record_par,
    )
else:
    __getattr__ = lazy_door(
        __name__,
        {
            "recorder": "CardSource Keyring Recorder RecorderKeys RecordingVault",
            "rounds": "PAR SCRIPTS SCRIPTS_SIZE check_recordable plain_round play_recorded "
            "record_par",
        },
    )

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
