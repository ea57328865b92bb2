"""Deliberate defects of a simulated device, line noise, and a tap on the cable."""

from __future__ import annotations

from hil.faults.behaviour import FaultyBehaviour
from hil.faults.catalogue import BREAKS, BY_NAME
from hil.faults.device import faulty_device
from hil.faults.line import CLEAN, CableDirection, frame_remainder, whole_frames
from hil.faults.tap import (
    TappedFrame,
    find_secrets,
    first_difference,
    repeated_ciphertexts,
    secrets_of,
)

__all__ = [
    "BREAKS",
    "BY_NAME",
    "CLEAN",
    "CableDirection",
    "FaultyBehaviour",
    "TappedFrame",
    "faulty_device",
    "find_secrets",
    "first_difference",
    "frame_remainder",
    "repeated_ciphertexts",
    "secrets_of",
    "whole_frames",
]
