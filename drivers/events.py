"""Happenings around a device, beside its own events: for the record, the screens and the log.

Each has the device's serial number and the time of the host's monotonic clock; the record adds the
time of day. No happening can contain a card: none is made from a record or a reply. The class
names are stored in records.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from drivers.devices import LinkState
from firmware_protocol.host import SessionEnding
from firmware_protocol.messages import DeviceClass, DeviceState, PowerCause, Verdict


class Happening(Struct, frozen=True, tag=True):
    serial: str
    at: int
    """The host's monotonic clock, in microseconds."""


class Identity(Struct, frozen=True):
    """Identity of a device, proven or claimed."""

    device_class: DeviceClass
    serial: str
    fingerprint: bytes


# --- states and ports -------------------------------------------------------------------------


class StateChanged(Happening, frozen=True):
    """Reported if it is new: repeated changes for the same reasons are reported once until the
    device is ready."""

    former: LinkState
    state: LinkState
    why: str


class PortOpened(Happening, frozen=True):
    """Reported once until the device is ready, as all below that can occur repeatedly."""

    port: str


class PortGone(Happening, frozen=True):
    """The port has failed or was removed."""

    port: str
    why: str


class PortDenied(Happening, frozen=True):
    """The port exists and cannot be opened."""

    port: str
    why: str


# --- who is there -----------------------------------------------------------------------------


class Introduced(Happening, frozen=True):
    """The device has answered HELLO; nothing is proven yet."""

    identity: Identity
    maker: str
    model: str
    state: DeviceState
    gateway: bool = False
    """It is an adapter that speaks for a device of another protocol behind it."""


class Swapped(Happening, frozen=True):
    """A different device is in the place of the wanted one, or a copy of it."""

    expected: Identity
    found: Identity


class AttemptFailed(Happening, frozen=True):
    """A handshake failed."""

    error: str
    number: int
    text: str


class Informed(Happening, frozen=True):
    """Firmware and state of the device, once for each session."""

    firmware: bytes
    boot: int
    cause: PowerCause
    capacity: int
    state: DeviceState


class FirmwareChanged(Happening, frozen=True):
    """The device has another firmware than in its last session."""

    old: bytes
    new: bytes


class Restarted(Happening, frozen=True):
    """The device has started since its last session."""

    old: int
    new: int
    cause: PowerCause


# --- the session ------------------------------------------------------------------------------


class SessionBegan(Happening, frozen=True):
    """An encrypted session has begun."""

    session: int
    version: int
    rekeyed: bool


class SessionEnded(Happening, frozen=True):
    """A session has ended."""

    why: SessionEnding


class Resumed(Happening, frozen=True):
    """The device's log continues where the record ends."""

    epoch: int
    oldest: int
    head: int


class Held(Happening, frozen=True):
    """The device's ring does not continue the record; two people have to decide."""

    verdict: Verdict
    epoch: int
    oldest: int
    head: int
    chain: bytes
    acked_seq: int = 0
    """The highest record that the device was told is stored."""


class Adopted(Happening, frozen=True):
    """Two people have accepted the ring as it is."""

    verdict: Verdict
    epoch: int
    oldest: int
    head: int
    by: tuple[str, str]


class ClockRead(Happening, frozen=True):
    """Offset of the clocks, once for each session and after each change of a millisecond."""

    offset_us: int
    """The device's clock minus the host's."""
    uncertainty_us: int


class DeviceStands(Happening, frozen=True):
    """The device's state flags have changed. At most once a second; the latest flags."""

    state: DeviceState


class CommandOverdue(Happening, frozen=True):
    """No reply arrived before the timeout."""

    command: str
    command_id: int
    sent: bool
    """False: it was never sent."""
    result: str | None
    """The event that shows whether it was carried out, if there is one."""


class CommandRefused(Happening, frozen=True):
    """The device has refused a command."""

    command: str
    command_id: int
    why: str
    arg: int


# --- storing ----------------------------------------------------------------------------------


class KeepFailed(Happening, frozen=True):
    """A record could not be stored; none is acknowledged any more."""

    why: str


class KeepMended(Happening, frozen=True):
    """Records can be stored again."""


class Paused(Happening, frozen=True):
    """No longer reported: only in records of earlier versions."""


class WentOn(Happening, frozen=True):
    """No longer reported: only in records of earlier versions."""

    paused_us: int


# --- faults -----------------------------------------------------------------------------------


class StuckBehind(Happening, frozen=True):
    """The device's ring goes up to `head`, and record `next` does not arrive, even if requested.
    The session is ended: the next one starts at the stored position."""

    next: int
    head: int


class Doubled(Happening, frozen=True):
    """More than one device that is plugged in has this serial number. They are tried in order, this
    one now; the key shows which one is authentic."""

    port: str


class Damage(Happening, frozen=True):
    """Damaged frames since the last report."""

    counts: tuple[tuple[str, int], ...]
    """Causes and how often."""


class Suspicion(Happening, frozen=True):
    """Complete frames that the session rejected, since the last report."""

    counts: tuple[tuple[str, int], ...]
    """Names of errors and how often."""


class Defect(Happening, frozen=True):
    """Authentic frames that violate TableLink, since the last report."""

    counts: tuple[tuple[str, int], ...]


class Alert(Happening, frozen=True):
    """Alerts in clear since the last report. Unauthenticated: only for display."""

    counts: tuple[tuple[str, int], ...]


class DeviceCounts(Happening, frozen=True):
    """Damaged and refused frames, as counted by the device."""

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
