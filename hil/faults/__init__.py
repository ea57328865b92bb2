"""Deliberate defects of a simulated device, line noise, wire taps."""

from __future__ import annotations

from hil.faults.behaviour import Mistakes
from hil.faults.catalogue import BREAKS, BY_NAME
from hil.faults.frames import to_the_end, whole_frames
from hil.faults.line import CLEAN, Strand
from hil.faults.tap import Tapped

__all__ = [
    "BREAKS",
    "BY_NAME",
    "CLEAN",
    "Mistakes",
    "Strand",
    "Tapped",
    "to_the_end",
    "whole_frames",
]
