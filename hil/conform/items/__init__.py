"""The items of PROTOCOL.md, each a function."""

from __future__ import annotations

from hil.conform.items.registry import TRIALS, WITHOUT_SESSION

__all__ = [
    "TRIALS",
    "WITHOUT_SESSION",
]
