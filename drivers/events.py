"""What happens around a device, beside its own events: for the record, for screens, for engineers.

Each has the device's serial number and the host's monotonic clock; whoever records it adds the
time of day. None of them can hold a card: none of them is made from a record or a reply.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from drivers.devices import State
from firmware_protocol.host import SessionEnding
from firmware_protocol.messages.enums import DeviceClass, DeviceState, PowerCause, Verdict


class Happening(Struct, frozen=True, tag=True):
    serial: str
    at: int
    """The host's monotonic clock, in microseconds."""


class Identity(Struct, frozen=True):
    """Who a device is, or says that it is."""

    device_class: DeviceClass
    serial: str
    fingerprint: bytes


# --- states and ports -------------------------------------------------------------------------


class StateChanged(Happening, frozen=True):
    """Told as long as it is news. A device that goes through the same states for the same reasons
    over and over, and is not ready in between, is told of once."""

    former: State
    state: State
    why: str


class PortOpened(Happening, frozen=True):
    """Told once until the device was ready, as are those below and in the next section that can
    come about over and over."""

    port: str


class PortGone(Happening, frozen=True):
    port: str
    why: str


class PortDenied(Happening, frozen=True):
    """The port is there and cannot be opened."""

    port: str
    why: str


# --- who is there -----------------------------------------------------------------------------


class Introduced(Happening, frozen=True):
    """The device has answered HELLO; nothing of it is proven."""

    identity: Identity
    maker: str
    model: str
    state: DeviceState


class Swapped(Happening, frozen=True):
    """Another device is in the place of the wanted one, or a copy of it."""

    expected: Identity
    found: Identity


class AttemptFailed(Happening, frozen=True):
    """An attempt at a session came to nothing."""

    error: str
    number: int
    text: str


class Informed(Happening, frozen=True):
    """What runs on the device, once for each session."""

    firmware: bytes
    boot: int
    cause: PowerCause
    capacity: int
    state: DeviceState


class FirmwareChanged(Happening, frozen=True):
    old: bytes
    new: bytes


class Restarted(Happening, frozen=True):
    """The device has started since it was last asked."""

    old: int
    new: int
    cause: PowerCause


# --- the session ------------------------------------------------------------------------------


class SessionBegan(Happening, frozen=True):
    session: int
    version: int
    rekeyed: bool


class SessionEnded(Happening, frozen=True):
    why: SessionEnding


class Resumed(Happening, frozen=True):
    epoch: int
    oldest: int
    head: int


class Held(Happening, frozen=True):
    """The device's ring does not continue the record; two people are asked."""

    verdict: Verdict
    epoch: int
    oldest: int
    head: int
    chain: bytes


class Adopted(Happening, frozen=True):
    """Two people have accepted the ring as it is."""

    verdict: Verdict
    epoch: int
    oldest: int
    head: int
    by: tuple[str, str]


class ClockRead(Happening, frozen=True):
    """How the clocks stand, once for each session and whenever that has moved by a millisecond."""

    offset_us: int
    """The device's clock minus the host's."""
    uncertainty_us: int


class DeviceStands(Happening, frozen=True):
    """The device's own state flags have changed. At most once a second, as they are then."""

    state: DeviceState


class CommandOverdue(Happening, frozen=True):
    """No reply came in time."""

    command: str
    command_id: int
    sent: bool
    """False: it never left the host."""
    result: str | None
    """The event that will tell whether it was carried out all the same."""


class CommandRefused(Happening, frozen=True):
    command: str
    command_id: int
    why: str
    arg: int


# --- keeping ----------------------------------------------------------------------------------


class KeepFailed(Happening, frozen=True):
    """What came cannot be kept; nothing is acknowledged any more."""

    why: str


class KeepMended(Happening, frozen=True):
    """It can be kept again."""


class Paused(Happening, frozen=True):
    """Nobody takes the events away: the device is asked to wait."""


class WentOn(Happening, frozen=True):
    """The events are taken away again."""

    paused_us: int


# --- what should not be -----------------------------------------------------------------------


class StuckBehind(Happening, frozen=True):
    """The device says that its ring goes up to `head`, and record `next` does not come, asked for
    or not. The session is given up: the next one says from where on records are wanted."""

    next: int
    head: int


class Doubled(Happening, frozen=True):
    """More than one device that is plugged in has this serial number. They are tried in turn, and
    this one now; its key shows which is the wanted one."""

    port: str


class Damage(Happening, frozen=True):
    """Damaged frames since the last such report."""

    counts: tuple[tuple[str, int], ...]
    """Causes and how often."""


class Suspicion(Happening, frozen=True):
    """Whole frames that the session did not accept, since the last such report."""

    counts: tuple[tuple[str, int], ...]
    """Names of errors and how often."""


class Defect(Happening, frozen=True):
    """The device said, in its own keys, what TableLink does not allow, since the last report."""

    counts: tuple[tuple[str, int], ...]


class Alert(Happening, frozen=True):
    """Hints in clear since the last such report. Anyone can make them: only to be shown."""

    counts: tuple[tuple[str, int], ...]


class DeviceCounts(Happening, frozen=True):
    """The device itself counted damaged or refused frames."""

    damaged: int
    refused: int


AnyHappening: TypeAlias = (
    StateChanged
    | PortOpened
    | PortGone
    | PortDenied
    | Introduced
    | Swapped
    | AttemptFailed
    | Informed
    | FirmwareChanged
    | Restarted
    | SessionBegan
    | SessionEnded
    | Resumed
    | Held
    | Adopted
    | ClockRead
    | DeviceStands
    | CommandOverdue
    | CommandRefused
    | KeepFailed
    | KeepMended
    | Paused
    | WentOn
    | Damage
    | Suspicion
    | Defect
    | Alert
    | DeviceCounts
    | StuckBehind
    | Doubled
)
