"""The bench page: a simulated table's devices in a browser, and seats for people to take."""

from __future__ import annotations

from hil.table.page.app import bench_page
from hil.table.page.bench import Desk, ServedGame

__all__ = [
    "Desk",
    "ServedGame",
    "bench_page",
]
