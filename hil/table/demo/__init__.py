"""`holecard demo`."""

from __future__ import annotations

from hil.table.demo.cli import register

__all__ = [
    "register",
]
