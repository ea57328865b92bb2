"""Deliberate defects of a simulated device, line noise, wire taps."""

from __future__ import annotations

from hil.faults.behaviour import FaultyBehaviour
from hil.faults.catalogue import BREAKS, BY_NAME
from hil.faults.device import faulty_device
from hil.faults.frames import to_the_end, whole_frames
from hil.faults.line import CLEAN, Strand
from hil.faults.tap import Tapped

__all__ = [
    "BREAKS",
    "BY_NAME",
    "CLEAN",
    "FaultyBehaviour",
    "Strand",
    "Tapped",
    "faulty_device",
    "to_the_end",
    "whole_frames",
]
