"""Typed events of all device classes, and how a record becomes one.

The events of one class are in its driver's module. A table maps each message to its event; tests
check that it is complete. The class names are stored in records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from firmware_protocol.messages import (
    Event,
    Fault,
    FaultCode,
    LogPressure,
    Paired,
    Power,
    PowerCause,
    Tamper,
    TamperSource,
)


class Origin(Struct, frozen=True):
    """The record behind an event: its device, its place in the log, and its time."""

    serial: str
    epoch: int
    seq: int
    boot: int
    t_us: int
    """The device's clock when it happened."""
    at: int
    """The host's monotonic clock when it arrived, in microseconds."""


class DeviceEvent(Struct, frozen=True):
    """A record of a device, in the driver's types."""

    origin: Origin


class Started(DeviceEvent, frozen=True):
    """The device has started; its former work has ended."""

    cause: PowerCause


class Tampered(DeviceEvent, frozen=True):
    """Tampering with the device was detected, or is over."""

    source: TamperSource
    active: bool


class Faulted(DeviceEvent, frozen=True):
    """A part of the device failed. ABORTED of a shuffler ends a shuffle."""

    code: FaultCode
    arg: int


class RingFilling(DeviceEvent, frozen=True):
    """This share of the device's ring is not acknowledged."""

    percent: int


class HostPaired(DeviceEvent, frozen=True):
    """A host was paired with the device."""

    fingerprint: bytes
    pairings: int


Make: TypeAlias = Callable[[Origin, Any], DeviceEvent]
Makes: TypeAlias = Mapping[type[Event], Make]
_D = TypeVar("_D", bound=DeviceEvent)


def same_fields(kind: type[_D]) -> Callable[[Origin, Event], _D]:
    """Constructor for an event with the fields of its message, in order. Never for a card."""

    def make(origin: Origin, event: Event) -> _D:
        return kind(origin, *astuple(event))

    return make


COMMON: Final[Makes] = MappingProxyType(
    {
        Power: same_fields(Started),
        Tamper: same_fields(Tampered),
        Fault: same_fields(Faulted),
        LogPressure: same_fields(RingFilling),
        Paired: same_fields(HostPaired),
    }
)
"""The events that every class of device has."""
