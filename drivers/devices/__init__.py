"""Device classes: typed events, commands, states."""

from __future__ import annotations

from drivers.devices.classes import DRIVERS
from drivers.devices.commands import (
    PERMANENT_REFUSALS,
    CommandRefused,
    CommandUnanswered,
    NotReady,
    PendingCommands,
    accepts,
)
from drivers.devices.driver import CommandChannel, Driver, ResultMissing
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
from drivers.devices.station import LAMPS_OFF, ButtonPressed, LampSetting, Station

__all__ = [
    "DRIVERS",
    "LAMPS_OFF",
    "PERMANENT_REFUSALS",
    "PORT_OPEN",
    "ButtonPressed",
    "CardRetracted",
    "CommandChannel",
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
    "LampSetting",
    "NotReady",
    "Origin",
    "PendingCommands",
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
