"""Device classes: typed events, commands, states."""

from __future__ import annotations

from drivers.devices.classes import DRIVERS
from drivers.devices.commands import (
    PERMANENT_REFUSALS,
    CommandRefusedError,
    CommandUnansweredError,
    NotReady,
    PendingCommands,
    accepts,
)
from drivers.devices.driver import CommandChannel, Driver, ResultMissing
from drivers.devices.events import DeviceEvent, Faulted, Origin, Sealed, SealedCard, Tampered
from drivers.devices.shoe import (
    CardRetracted,
    CoverMoved,
    CutCardCame,
    ReadFailed,
    RereadProblem,
    ShoeCardRead,
    ShoeDriver,
    ShoeJammed,
    ShoeLoaded,
)
from drivers.devices.shuffler import (
    CountWrong,
    DoorMoved,
    InDoubt,
    ShuffleDone,
    ShufflerDriver,
    ShufflerJammed,
    ShuffleStarted,
)
from drivers.devices.state import PORT_OPEN, LinkState, StateMachine, Trigger
from drivers.devices.station import LAMPS_OFF, ButtonPressed, LampSetting, StationDriver

__all__ = [
    "DRIVERS",
    "LAMPS_OFF",
    "PERMANENT_REFUSALS",
    "PORT_OPEN",
    "ButtonPressed",
    "CardRetracted",
    "CommandChannel",
    "CommandRefusedError",
    "CommandUnansweredError",
    "CountWrong",
    "CoverMoved",
    "CutCardCame",
    "DeviceEvent",
    "DoorMoved",
    "Driver",
    "Faulted",
    "InDoubt",
    "LampSetting",
    "LinkState",
    "NotReady",
    "Origin",
    "PendingCommands",
    "ReadFailed",
    "RereadProblem",
    "ResultMissing",
    "Sealed",
    "SealedCard",
    "ShoeCardRead",
    "ShoeDriver",
    "ShoeJammed",
    "ShoeLoaded",
    "ShuffleDone",
    "ShuffleStarted",
    "ShufflerDriver",
    "ShufflerJammed",
    "StateMachine",
    "StationDriver",
    "Tampered",
    "Trigger",
    "accepts",
]
