"""One simulated device as a process: power, clock, port, control."""

from __future__ import annotations

from hil.simulator.device import Stand
from hil.simulator.event_loop import Live
from hil.simulator.process import Running, running
from hil.simulator.run import Setup, plugged_in, sole

__all__ = [
    "Live",
    "Running",
    "Setup",
    "Stand",
    "plugged_in",
    "running",
    "sole",
]
