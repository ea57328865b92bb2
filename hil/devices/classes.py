"""The classes of simulated devices. Every other table of classes in hil is built from this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device import AtShoe, AtShuffler, AtStation, Mechanism
from firmware_protocol.messages import Cover, DeviceClass, Door, Event, LampFault
from hil.devices.shoe import SimulatedShoe
from hil.devices.shuffler import SimulatedShuffler
from hil.devices.station import SimulatedStation


class SimulatedClass(Struct, frozen=True):
    profile: Profile
    device_class: DeviceClass
    mechanism: Callable[..., Mechanism]
    requests: Any
    """The union of its own requests on the control socket."""
    serial: str
    """Serial number of a new device."""
    filler: Event
    """The event that a ring is filled with: one that a table does not act on."""


CLASSES: Final[dict[Profile, SimulatedClass]] = {
    one.profile: one
    for one in (
        SimulatedClass(
            "shoe",
            DeviceClass.SHOE,
            SimulatedShoe,
            AtShoe,
            "SH-0001",
            Cover(False),
        ),
        SimulatedClass(
            "shuffler",
            DeviceClass.SHUFFLER,
            SimulatedShuffler,
            AtShuffler,
            "SF-0001",
            Door(False),
        ),
        SimulatedClass(
            "station",
            DeviceClass.STATION,
            SimulatedStation,
            AtStation,
            "ST-0001",
            LampFault(1, 0),
        ),
    )
}


def class_of(device_class: DeviceClass) -> SimulatedClass:
    return next(one for one in CLASSES.values() if one.device_class is device_class)
