"""A simulated device whose breaks can be switched on."""

from __future__ import annotations

import secrets
from pathlib import Path

from firmware_protocol.device import Device, DeviceFolder, Mechanism, RandomBytes
from firmware_protocol.messages import PowerCause
from hil.faults.behaviour import FaultyBehaviour
from hil.faults.service import FaultService


def faulty_device(
    place: Path,
    mechanism: Mechanism,
    *,
    now: int,
    cause: PowerCause = PowerCause.POWER_ON,
    breaks: set[str] | None = None,
    sync: bool = True,
    random: RandomBytes = secrets.token_bytes,
) -> Device:
    """A started device that takes service requests. They change `breaks`, so that the caller can
    pass the same set on after a power cut."""
    breaks = set() if breaks is None else breaks
    return Device(
        DeviceFolder(place, sync=sync),
        mechanism,
        now=now,
        cause=cause,
        behaviour=FaultyBehaviour(breaks),
        service=lambda device: FaultService(device, breaks),
        random=random,
    )
