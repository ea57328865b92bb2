"""What is wrong with the devices of a table, cause by cause, and what the procedure is told of it.

A device is lost to the procedure while anything is wrong with it, and back when nothing is. What
two people have accepted is not told again; it is told anew when it comes anew.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.events import Actor, Device, DeviceBack, DeviceLost, Event
from controller.procedure.model.state import State

FaultCause: TypeAlias = Literal[
    "link",
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
"""No device says that these are over: two people do."""
DEVICES: Final[tuple[Device, ...]] = ("shoe", "shuffler", "station")


class DeviceFault(Struct, frozen=True):
    """Something that is wrong with a device."""

    device: Device
    serial: str
    cause: FaultCause
    what: str = ""
    """Which one, where a cause can come several times over: the source of tampering."""
    why: str = ""
    """In words for people. None of them tells a card."""

    @property
    def key(self) -> tuple[str, FaultCause, str]:
        return (self.serial, self.cause, self.what)


class DeviceFaults(Struct, frozen=True):
    """All of them, in the order in which they came."""

    every: tuple[DeviceFault, ...] = ()
    accepted: frozenset[tuple[str, FaultCause, str]] = frozenset()
    """Two people take the device as it is."""
    awaited: frozenset[tuple[str, FaultCause, str]] = frozenset()
    """Of devices that are still to be found after a start: nobody is told before that takes too
    long."""

    def after(self, wrong: tuple[DeviceFault, ...], right: tuple[DeviceFault, ...]) -> DeviceFaults:
        """With these, and without those."""
        over = {one.key for one in right}
        left = tuple(one for one in self.every if one.key not in over)
        known = {one.key for one in left}
        new = tuple(one for one in wrong if one.key not in known)
        return DeviceFaults((*left, *new), self.accepted - over, self.awaited - over)

    def accept(self, device: str) -> DeviceFaults:
        """Two people take this device as it is now. What no device takes back is over."""
        theirs = [one for one in self.every if one.device == device]
        over = tuple(one for one in theirs if one.cause in LATCHED)
        rest = frozenset(one.key for one in theirs if one.cause not in LATCHED)
        left = self.after((), over)
        return replace(left, accepted=left.accepted | rest)

    def untold(self, device: Device) -> DeviceFault | None:
        """The first thing that is wrong with it and that nobody has accepted."""
        for one in self.every:
            if one.device == device and one.key not in self.accepted | self.awaited:
                return one
        return None

    def taken_as_it_is(self, device: Device) -> bool:
        """Something is wrong with it, and two people have accepted that."""
        return any(one.device == device and one.key in self.accepted for one in self.every)

    def any_of(self, device: str) -> bool:
        return any(one.device == device for one in self.every)


NO_FAULTS: Final = DeviceFaults()


def next_report(troubles: DeviceFaults, s: State) -> Event | None:
    """What the procedure is still to be told of a device."""
    for device in DEVICES:
        actor = Actor("device", device)
        untold = troubles.untold(device)
        if untold is not None and device not in s.lost:
            return DeviceLost(actor, device, untold.why)
        if device in s.lost and not troubles.any_of(device):
            return DeviceBack(actor, device, agrees=True)
    return None
