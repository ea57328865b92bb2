"""A shoe on a small desk, loaded and open, and what comes of drawing from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from firmware_protocol.device.control import ControlRequest, Draw, Load
from firmware_protocol.device.interfaces import CannotDo, Mechanism
from firmware_protocol.messages import Capabilities, CardRead, Event, Lock, LockState
from hil.devices import SimulatedShoe, card_names
from hil.devices.shoe import RECOGNISE_MS
from tests.support.hil.devices.desk import Scene

OPEN = Lock(LockState.OPEN)
SHUT = Lock(LockState.LOCKED)
ONE_MS = 40 + RECOGNISE_MS
"""From the hand's pull to the record."""


def table(
    *breaks: str,
    make: Callable[[], Mechanism] = SimulatedShoe,
    load: Load | None = None,
    seed: int = 1,
) -> Scene:
    """A loaded and open shoe."""
    scene = Scene(make, *breaks, seed=seed)
    scene.do(load or Load(decks=1))
    if Capabilities.LOCK in scene.mechanism.capabilities:
        scene.call(OPEN)
    return scene


def draw(scene: Scene, **how: Any) -> list[Event]:
    """Draw, and the events that came of it."""
    before = len(scene.events)
    scene.do(Draw(**how))
    scene.run()
    return scene.events[before:]


def names(events: list[Event]) -> list[str]:
    return [card_names.name(event.card) for event in events if isinstance(event, CardRead)]


def cannot(scene: Scene, hand: ControlRequest, says: str) -> None:
    """The hand is turned away, and nothing has changed."""
    before, events = scene.look(), len(scene.events)
    with pytest.raises(CannotDo, match=says):
        scene.do(hand)
    assert scene.look() == before
    assert len(scene.events) == events
