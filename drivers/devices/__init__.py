"""Device classes: typed events and commands."""

from __future__ import annotations

from drivers.devices.classes import DRIVERS
from drivers.devices.commands import Calls, CommandRefused, CommandUnanswered, NotReady, accepts
from drivers.devices.driver import Driver, Line, ResultMissing
from drivers.devices.events import DeviceEvent, Faulted, Origin, Tampered
from drivers.devices.sealed import Sealed, SealedCard
from drivers.devices.shoe import (
    CardRetracted,
    CoverMoved,
    CutCardCame,
    ReadFailed,
    RereadProblem,
    Shoe,
    ShoeCardRead,
    ShoeJammed,
    ShoeLoaded,
)
from drivers.devices.shuffler import (
    CountWrong,
    DoorMoved,
    InDoubt,
    ShuffleDone,
    Shuffler,
    ShufflerJammed,
    ShuffleStarted,
)
from drivers.devices.state import PORT_OPEN, State, StateMachine, Trigger
from drivers.devices.station import ButtonPressed, Station

__all__ = [
    "DRIVERS",
    "PORT_OPEN",
    "ButtonPressed",
    "Calls",
    "CardRetracted",
    "CommandRefused",
    "CommandUnanswered",
    "CountWrong",
    "CoverMoved",
    "CutCardCame",
    "DeviceEvent",
    "DoorMoved",
    "Driver",
    "Faulted",
    "InDoubt",
    "Line",
    "NotReady",
    "Origin",
    "ReadFailed",
    "RereadProblem",
    "ResultMissing",
    "Sealed",
    "SealedCard",
    "Shoe",
    "ShoeCardRead",
    "ShoeJammed",
    "ShoeLoaded",
    "ShuffleDone",
    "ShuffleStarted",
    "Shuffler",
    "ShufflerJammed",
    "State",
    "StateMachine",
    "Station",
    "Tampered",
    "Trigger",
    "accepts",
]
