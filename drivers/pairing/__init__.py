"""Pairing at a real port."""

from __future__ import annotations

from drivers.pairing.pairing import IntroductionOutcome, run_introduction

__all__ = [
    "IntroductionOutcome",
    "run_introduction",
]
