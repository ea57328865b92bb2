"""Table of the device classes and their drivers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from drivers.devices.driver import Driver
from drivers.devices.shoe import ShoeDriver
from drivers.devices.shuffler import ShufflerDriver
from drivers.devices.station import StationDriver
from firmware_protocol.messages import DeviceClass

DRIVERS: Final[Mapping[DeviceClass, type[Driver]]] = MappingProxyType(
    {driver.DEVICE_CLASS: driver for driver in (ShoeDriver, ShufflerDriver, StationDriver)}
)
