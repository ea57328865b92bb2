"""Deliberate defects of a simulated device, line noise, wire taps."""

from __future__ import annotations

from hil.faults.behaviour import FaultyBehaviour
from hil.faults.catalogue import BREAKS, BY_NAME
from hil.faults.device import faulty_device
from hil.faults.frames import frame_remainder, whole_frames
from hil.faults.line import CLEAN, CableDirection
from hil.faults.tap import TappedFrame

__all__ = [
    "BREAKS",
    "BY_NAME",
    "CLEAN",
    "CableDirection",
    "FaultyBehaviour",
    "TappedFrame",
    "faulty_device",
    "frame_remainder",
    "whole_frames",
]
