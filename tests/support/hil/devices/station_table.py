"""A station on a small desk, armed, and the two edges of a press."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firmware_protocol.device.interfaces import Mechanism
from firmware_protocol.messages import Arm, ArmReply, Button, ButtonMask, Edge, WhichButton
from hil.devices import SimulatedStation
from tests.support.hil.devices.desk import Scene

HIT, STAND, DOUBLE = ButtonMask.HIT, ButtonMask.STAND, ButtonMask.DOUBLE
EVERY = ButtonMask(0x1FF)


def seat(
    *breaks: str,
    mask: ButtonMask = EVERY,
    make: Callable[[], Mechanism] = SimulatedStation,
    ttl: int = 60_000,
) -> Scene:
    """Seat 1, armed under token 77."""
    scene = Scene(make, *breaks)
    if mask:
        assert scene.call(Arm(1, mask, 77, ttl)) == ArmReply()
    return scene


def pair(button: WhichButton, press: int, held: int, *, token: int = 77, at: int = 1) -> list[Any]:
    """The two edges of a press."""
    return [
        Button(at, button, Edge.DOWN, 0, press, token),
        Button(at, button, Edge.UP, held, press, token),
    ]
