"""Typed events of all device classes, how a record becomes one, and sealed values.

The events of one class are in its driver's module. A table maps each message to its event; tests
check that it is complete. The class names are stored in records. A sealed value is a card that was
read and must not be shown yet:

    card = SealedCard(17)
    repr(card), str(card), f"{card:>9}"      # the same for every card
    card.open()                              # 17; the only way

It is equal only to itself, is hashed by identity, and cannot be pickled, encoded or compared. So it
may be in an event, a queue, a log line or a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar, final

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


# --- sealed values -----------------------------------------------------------------------------

T = TypeVar("T")


class SealBroken(TypeError):
    """An attempt to change or to serialize a sealed value."""


class Sealed(Generic[T]):
    """Hides a value until open() is called."""

    # The value is in a closure, not in an attribute: code that walks over attributes (vars,
    # inspectors, encoders, crash reporters) finds a function.
    __slots__ = ("_open",)

    _open: Callable[[], T]

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_open", lambda: value)

    @final
    def open(self) -> T:
        """The value. The caller is responsible for it from now on."""
        return self._open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str, /) -> str:
        # Also for a number format ("d"): the text is the same for every value.
        return repr(self)

    def __rich_repr__(self) -> list[Any]:
        return []

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise SealBroken(f"{self!r} does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise SealBroken(f"{self!r} does not change")

    def __copy__(self) -> Sealed[T]:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Sealed[T]:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SealBroken(f"{self!r} is not pickled")

    def __getstate__(self) -> NoReturn:
        raise SealBroken(f"{self!r} is not pickled")


@final
class SealedCard(Sealed[int]):
    """One card, 0 to 51, as the shoe read it."""

    __slots__ = ()
