"""The control socket of a simulated device."""

from __future__ import annotations

from hil.control.socket import Control, ControlLost, ControlServer, HandRefused
from hil.control.verbs import BY_CLASS, BadHand, Verbs, read

__all__ = [
    "BY_CLASS",
    "BadHand",
    "Control",
    "ControlLost",
    "ControlServer",
    "HandRefused",
    "Verbs",
    "read",
]
