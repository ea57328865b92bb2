"""Pairing at a real port."""

from __future__ import annotations

from drivers.pairing.pairing import Outcome, hold

__all__ = [
    "Outcome",
    "hold",
]
