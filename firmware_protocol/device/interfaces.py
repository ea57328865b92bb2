"""The joints of a simulated device: what a front end, the core and a mechanism know of each other.

    front end --bytes--> Peer (the core) --commands--> Mechanism (shoe, shuffler, station)
                          the core  <--events-- Desk <-- Mechanism

Times are whole microseconds of one monotonic clock, passed in as `now`; nobody here asks a clock.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.identity import DeviceIdentity
from firmware_protocol.device.records import RecordContext, RecordSender
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.sessions import DeviceSession, DeviceSessions, FrameChannel
from firmware_protocol.messages.codec import Command, Event, Reply
from firmware_protocol.messages.enums import (
    Capabilities,
    DeviceClass,
    DeviceState,
    FaultCode,
    PowerCause,
    Refusal,
)
from firmware_protocol.tablelink.plaintext import CommandReply

Answer: TypeAlias = dict[str, Any]
"""What the control socket answers: names and plain JSON values."""


class CommandRefusal(Exception):
    """A command that the mechanism does not carry out: it becomes REFUSED."""

    def __init__(self, why: Refusal, arg: int = 0) -> None:
        super().__init__(why.name, arg)
        self.why = why
        self.arg = arg


class CannotDo(Exception):
    """A hand asked for what cannot be done now: what, and what is possible instead."""


class Peer(Protocol):
    """What stands behind a port: a device, or in a test an echo."""

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host."""

    def wake(self, now: int) -> None:
        """Do what is due."""

    def due(self) -> int | None:
        """When wake() is wanted next; None: not before something comes."""

    def take(self) -> bytes:
        """Bytes for the host, all that wait."""


class DeviceCore(RecordContext, Protocol):
    """What the commands need of the device around them."""

    identity: DeviceIdentity
    cause: PowerCause
    behaviour: Behaviour
    wire: FrameChannel
    ring: Ring
    records: RecordSender
    sessions: DeviceSessions
    mechanism: Mechanism
    faulty: bool

    def state(self) -> DeviceState: ...

    def ails(self, now: int) -> dict[FaultCode, int]: ...

    def report(self, code: FaultCode, arg: int, now: int) -> bool: ...

    def reply(self, session: DeviceSession, reply: CommandReply, now: int) -> None: ...


class RingPosition(Protocol):
    """Which ring it is, and how far it goes."""

    @property
    def epoch(self) -> int: ...
    @property
    def head(self) -> int: ...


class CoreServices(Protocol):
    """What the core offers to its mechanism."""

    @property
    def ring(self) -> RingPosition:
        """The ring that record() commits to."""

    def record(self, event: Event, now: int) -> bool:
        """Commit this event to the ring; it is durable when this returns. False: no room (then
        nothing was recorded, and the device is locked). The core sends it when it may."""

    def number(self, name: str) -> int:
        """The next number of a name that is kept over restarts: "loading", "shuffle"; 1 first."""

    def last_number(self, name: str) -> int:
        """The last number that number() gave; 0 before the first."""

    def random(self, size: int) -> bytes:
        """Random bytes, fit for keys and salts."""

    def reread(self, epoch: int, seq: int) -> bytes:
        """The 56 bytes of a record. Refuse(NOT_KEPT) if it is none of the last 64."""

    def broken(self, name: str) -> bool:
        """Whether this break (hil.faults.catalogue) is switched on."""

    def full(self) -> bool:
        """Whether the ring is full up to its spare slots."""

    def keep(self, name: str, data: bytes) -> None:
        """Keep a thing over restarts, durably (what lies in the shoe, say)."""

    def kept(self, name: str) -> bytes:
        """What was kept under this name; b"" if nothing."""


class RequestHandler(Protocol):
    """Requests to a device that do not depend on its class: switches, breaks, the ring's memory."""

    def started(self, now: int) -> None:
        """The device has started, and its mechanism too."""

    def handle(self, hand: ControlRequest, now: int) -> Answer | None:
        """Carry out a request, or None if it is the mechanism's. Raises CannotDo if it is
        impossible now."""


class Mechanism(Protocol):
    """One class of device: cards, motors, buttons and lamps, without the wire."""

    device_class: DeviceClass
    capabilities: Capabilities

    def start(self, desk: CoreServices, now: int) -> None:
        """Power has come on. POWER is recorded already."""

    def command(self, command: Command, now: int) -> Reply:
        """Carry out a command of this class (INFO, RESUME, SELFTEST are the core's). Its own
        reply, or Refuse. The core has checked form, repeats and NOT_RESUMED."""

    def safe(self, now: int) -> None:
        """No host any more, or the ring is full: lock, disarm. Lamps keep their lease."""

    def state(self) -> DeviceState:
        """LOCKED, OPEN, JAMMED, RUNNING, FAULTY as they are; the core adds the other flags."""

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        """What is wrong, worst first; empty when all is well."""

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        """Someone's hand at the device. CannotDo when it makes no sense now."""

    def wake(self, now: int) -> None:
        """Do what is due: motors, contacts, leases."""

    def due(self) -> int | None:
        """When wake() is wanted next."""
