"""A shuffler on a small desk with a batch inside, and what comes of a shuffle."""

from __future__ import annotations

from collections.abc import Callable

from firmware_protocol.device.control import Put
from firmware_protocol.device.interfaces import Mechanism
from firmware_protocol.messages import CountError, Done, Event, Fault, Progress, Start
from hil.devices import SimulatedShuffler
from tests.support.hil.devices.desk import Scene

SECOND = 1_000_000
STEPS = list(range(5, 100, 5))
ENDS = (Done, CountError, Fault)


def seeded() -> SimulatedShuffler:
    return SimulatedShuffler(shuffle_ms=1000, seed=7)


def machine(*breaks: str, put: Put | None = None, make: Callable[[], Mechanism] = seeded) -> Scene:
    """With a batch inside and the door closed."""
    scene = Scene(make, *breaks)
    scene.do(put or Put(decks=1))
    return scene


def shuffle(scene: Scene, decks: int = 1) -> list[Event]:
    """Start and wait for the end; all events but PROGRESS."""
    before = len(scene.events)
    scene.call(Start(decks, 0))
    scene.run()
    return [event for event in scene.events[before:] if not isinstance(event, Progress)]


def ends(scene: Scene) -> list[Event]:
    return [event for event in scene.events if isinstance(event, ENDS)]
