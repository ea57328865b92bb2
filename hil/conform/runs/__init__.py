"""A conformance run: device, keys, items, report."""

from __future__ import annotations

from hil.conform.runs.cli import register

__all__ = [
    "register",
]
