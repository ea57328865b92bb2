"""A station at a table in simulated time: what the tests of its buttons and lamps share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivers.devices.station import LampSetting
from firmware_protocol.device import Describe
from firmware_protocol.messages import ButtonMask, DeviceClass, LampPattern
from tests.support.drivers.simulated import Plugged, table

BLUE = LampSetting(bytes((0, 0, 255)), LampPattern.BLINK, 1000)
ALL = ButtonMask.HIT | ButtonMask.STAND


def at_station(tmp_path: Path) -> Any:
    return table(tmp_path, DeviceClass.STATION, "ST-1")


def seat(device: Plugged) -> Any:
    return device.request(Describe())["mechanism"]["seats"]["1"]
