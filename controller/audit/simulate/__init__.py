"""Records of scripted and simulated rounds."""

from __future__ import annotations

from controller.audit.simulate.recorder import Recorder, RecorderKeys
from controller.audit.simulate.rounds import PAR, check_recordable, plain_round, record_par

__all__ = [
    "PAR",
    "Recorder",
    "RecorderKeys",
    "check_recordable",
    "plain_round",
    "record_par",
]
