"""One simulated device with power, clock, port and control socket, as a process or in a loop."""

from __future__ import annotations

from hil.simulator.device import SimulatedDevice
from hil.simulator.event_loop import LiveDevice
from hil.simulator.process import DeviceProcess, device_process
from hil.simulator.run import DeviceSetup, exclusive_use, running_device

__all__ = [
    "DeviceProcess",
    "DeviceSetup",
    "LiveDevice",
    "SimulatedDevice",
    "device_process",
    "exclusive_use",
    "running_device",
]
