"""Device classes: typed events and commands."""

from __future__ import annotations

from drivers.devices.commands import Calls, CommandRefused, CommandUnanswered, NotReady, takes
from drivers.devices.driver import Driver, Line, ResultMissing
from drivers.devices.events import DeviceEvent, Faulted, Tampered, origin_of
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
from drivers.devices.state import PORT_OPEN, Standing, State, Trigger
from drivers.devices.station import ButtonPressed, Station

__all__ = [
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
    "Standing",
    "State",
    "Station",
    "Tampered",
    "Trigger",
    "origin_of",
    "takes",
]
