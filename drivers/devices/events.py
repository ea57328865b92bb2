"""What devices tell, in the drivers' own types: who, when, and what happened.

The types of each class of device stand in its own module; here are those that all share, and how
a record becomes one of them: by a table, which the tests hold complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from firmware_protocol.messages import registry
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.enums import FaultCode, PowerCause, TamperSource


class Origin(Struct, frozen=True):
    """Which device's record an event is, and when it happened."""

    serial: str
    epoch: int
    seq: int
    boot: int
    t_us: int
    """The device's clock when it happened."""
    at: int
    """The host's monotonic clock when it came, in microseconds."""


class DeviceEvent(Struct, frozen=True):
    """Something that a device told. It is kept and acknowledged already."""

    origin: Origin


class Started(DeviceEvent, frozen=True):
    """The device has started; whatever it was doing has ended."""

    cause: PowerCause


class Tampered(DeviceEvent, frozen=True):
    """Someone is at the device, or no longer."""

    source: TamperSource
    active: bool


class Faulted(DeviceEvent, frozen=True):
    """Something in the device does not work; of a shuffler, ABORTED ends a shuffle."""

    code: FaultCode
    arg: int


class RingFilling(DeviceEvent, frozen=True):
    """Too much of the device's ring is not acknowledged."""

    percent: int


class HostPaired(DeviceEvent, frozen=True):
    """A host was paired with the device."""

    fingerprint: bytes
    pairings: int


Make: TypeAlias = Callable[[Origin, Any], DeviceEvent]
Makes: TypeAlias = Mapping[type[Event], Make]
_D = TypeVar("_D", bound=DeviceEvent)


def same_fields(kind: type[_D]) -> Callable[[Origin, Event], _D]:
    """For a type whose fields are those of the message, in its order. Never for a card."""

    def make(origin: Origin, event: Event) -> _D:
        return kind(origin, *astuple(event))

    return make


COMMON: Final[Makes] = MappingProxyType(
    {
        registry.Power: same_fields(Started),
        registry.Tamper: same_fields(Tampered),
        registry.Fault: same_fields(Faulted),
        registry.LogPressure: same_fields(RingFilling),
        registry.Paired: same_fields(HostPaired),
    }
)
"""The events that every class of device has."""
