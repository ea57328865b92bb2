"""Colours and patterns of the lamps at a seat."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.procedure.model.effects import Lamp
from drivers.devices import LAMPS_OFF, LampSetting
from firmware_protocol.messages import LampPattern

_BLUE, _GREEN, _AMBER, _RED = b"\x00\x00\xff", b"\x00\xff\x00", b"\xff\xa0\x00", b"\xff\x00\x00"
_SLOW, _FAST = 1500, 600
"""Milliseconds: 40 and 100 times a minute."""

LAMPS: Final[Mapping[Lamp, LampSetting]] = MappingProxyType(
    {
        "dark": LAMPS_OFF,
        "turn": LampSetting(_BLUE, LampPattern.STEADY),
        "asked": LampSetting(_AMBER, LampPattern.BLINK, _SLOW),
        "accepted": LampSetting(_GREEN, LampPattern.STEADY),
        "won": LampSetting(_GREEN, LampPattern.BLINK, _SLOW),
        "attention": LampSetting(_AMBER, LampPattern.STEADY),
        "fault": LampSetting(_RED, LampPattern.BLINK, _FAST),
    }
)
