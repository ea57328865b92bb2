"""Records of scripted and simulated rounds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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

_MODULES = ("recorder", "rounds", "vault")


def __getattr__(name: str) -> object:
    """Import the public names on first use: `holecard script --help` needs none of them."""
    if name in __all__:
        for module in _MODULES:
            found = importlib.import_module(f"{__name__}.{module}")
            if hasattr(found, name):
                return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
