"""Current faults of the table's devices, and the events that report them to the procedure.

A device is lost to the procedure while it has a fault, and back when it has none. A fault that two
people have accepted is not reported again until it ends and recurs.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.events import Actor, Device, DeviceBack, DeviceLost, Event
from controller.procedure.model.state import State, Step

FaultCause: TypeAlias = Literal[
    "link",
    "behind",
    "deck_kind",
    "cover",
    "door",
    "jam",
    "tampering",
    "fault",
    "loaded",
    "retracted",
    "aborted",
    "random",
    "hidden",
]
LATCHED: Final[frozenset[FaultCause]] = frozenset(
    {"loaded", "retracted", "aborted", "random", "hidden"}
)
"""Causes whose end no device reports: two people have to accept the device."""
DEVICES: Final[tuple[Device, ...]] = ("shoe", "shuffler", "station")


class DeviceFault(Struct, frozen=True):
    """A current fault of a device."""

    device: Device
    serial: str
    cause: FaultCause
    what: str = ""
    """Distinguishes several faults of the same cause: the source of tampering."""
    why: str = ""
    """Text for people. Never names a card."""

    @property
    def key(self) -> tuple[str, FaultCause, str]:
        return (self.serial, self.cause, self.what)


class DeviceFaults(Struct, frozen=True):
    """All current faults, in the order in which they began."""

    every: tuple[DeviceFault, ...] = ()
    accepted: frozenset[tuple[str, FaultCause, str]] = frozenset()
    """Faults that two people have accepted."""
    awaited: frozenset[tuple[str, FaultCause, str]] = frozenset()
    """Faults of devices not found yet after a start: reported only if that takes too long."""
    reported: frozenset[tuple[str, FaultCause, str]] = frozenset()
    """Faults of cause `behind` that were reported to the procedure."""

    def after(self, wrong: tuple[DeviceFault, ...], right: tuple[DeviceFault, ...]) -> DeviceFaults:
        """Returns the faults after `wrong` began and `right` ended."""
        over = {one.key for one in right}
        left = tuple(one for one in self.every if one.key not in over)
        known = {one.key for one in left}
        new = tuple(one for one in wrong if one.key not in known)
        kept = (self.accepted - over, self.awaited - over, self.reported - over)
        return DeviceFaults((*left, *new), *kept)

    def accept(self, device: str) -> DeviceFaults:
        """Returns the faults after two people accepted the device. Latched faults end."""
        theirs = [one for one in self.every if one.device == device]
        over = tuple(one for one in theirs if one.cause in LATCHED)
        rest = frozenset(one.key for one in theirs if one.cause not in LATCHED)
        left = self.after((), over)
        return replace(left, accepted=left.accepted | rest)

    def after_report(self, event: DeviceLost) -> DeviceFaults:
        """Returns the faults after the procedure accepted a report of next_report()."""
        if not event.behind:
            return self
        told = (one for one in self.of(event.device) if one.cause == "behind")
        keys = frozenset(one.key for one in told if one.why == event.why)
        return replace(self, reported=self.reported | keys)

    def of(self, device: Device) -> tuple[DeviceFault, ...]:
        """The faults of the device that are neither accepted nor awaited."""
        aside = self.accepted | self.awaited
        return tuple(one for one in self.every if one.device == device and one.key not in aside)

    def taken_as_it_is(self, device: Device) -> bool:
        """Whether two people have accepted a current fault of the device."""
        return any(one.device == device and one.key in self.accepted for one in self.every)

    def any_of(self, device: str) -> bool:
        return any(one.device == device for one in self.every)


NO_FAULTS: Final = DeviceFaults()


def next_report(faults: DeviceFaults, s: State) -> Event | None:
    """Returns the next event about a device that is still to be reported to the procedure."""
    for device in DEVICES:
        actor = Actor("device", device)
        found = faults.of(device)
        behind = _next_behind(faults, s, device)
        other = next((one for one in found if one.cause != "behind"), None)
        if behind is not None:
            return DeviceLost(actor, device, behind.why, behind=True)
        if other is not None and device not in s.lost:
            return DeviceLost(actor, device, other.why)
        if device in s.lost and not faults.any_of(device):
            return DeviceBack(actor, device, agrees=True)
    return None


def _next_behind(faults: DeviceFaults, s: State, device: Device) -> DeviceFault | None:
    """The first fault of cause `behind` that is still to be reported, also if a device of the class
    is lost already: only this one holds the table at each step. While the table is closed, none
    is: it is reported when the table is opened, which it then holds."""
    if s.step is Step.CLOSED:
        return None
    told = {hold.detail for hold in s.holds if hold.device == device} if device in s.lost else set()
    for one in faults.of(device):
        # A hold from before a restart shows what was reported then.
        known = one.key in faults.reported or one.why in told
        if one.cause == "behind" and not known:
            return one
    return None
