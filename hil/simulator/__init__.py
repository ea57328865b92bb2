"""One simulated device with power, clock, port and control socket, as a process or in a loop."""

from __future__ import annotations

from hil.simulator.device import SimulatedDevice
from hil.simulator.run import (
    DeviceProcess,
    DeviceSetup,
    LiveDevice,
    device_in_loop,
    device_process,
    exclusive_use,
    running_device,
)

__all__ = [
    "DeviceProcess",
    "DeviceSetup",
    "LiveDevice",
    "SimulatedDevice",
    "device_in_loop",
    "device_process",
    "exclusive_use",
    "running_device",
]
