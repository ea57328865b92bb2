"""The bench page: a simulated table's devices in a browser, and seats for people to take."""

from __future__ import annotations

from hil.table.page.bench import Desk, ServedGame
from hil.table.page.server import bench_page

__all__ = [
    "Desk",
    "ServedGame",
    "bench_page",
]
