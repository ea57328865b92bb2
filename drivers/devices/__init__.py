"""Device classes: typed events and commands."""

from __future__ import annotations

from drivers.devices.commands import Calls, CommandRefused, CommandUnanswered, NotReady, takes
from drivers.devices.driver import Driver, Line, ResultMissing
from drivers.devices.events import DeviceEvent, Faulted, Tampered, origin_of
from drivers.devices.sealed import Sealed, SealedCard
from drivers.devices.shoe import RereadProblem, Shoe
from drivers.devices.shuffler import InDoubt, Shuffler
from drivers.devices.state import PORT_OPEN, Standing, State, Trigger
from drivers.devices.station import Station

__all__ = [
    "PORT_OPEN",
    "Calls",
    "CommandRefused",
    "CommandUnanswered",
    "DeviceEvent",
    "Driver",
    "Faulted",
    "InDoubt",
    "Line",
    "NotReady",
    "RereadProblem",
    "ResultMissing",
    "Sealed",
    "SealedCard",
    "Shoe",
    "Shuffler",
    "Standing",
    "State",
    "Station",
    "Tampered",
    "Trigger",
    "origin_of",
    "takes",
]
