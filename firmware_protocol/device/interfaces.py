"""Interfaces between the owner of a port, the core of a device, and its mechanism.

    owner --bytes--> Peer (the core) --commands--> Mechanism (shoe, shuffler, station)
                     CoreServices (the core) <--events-- Mechanism

Times are integer microseconds of one monotonic clock, passed as `now`.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.records import RecordSender
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.sessions import DeviceContext, DeviceSession
from firmware_protocol.messages import (
    Capabilities,
    Command,
    DeviceClass,
    DeviceState,
    Event,
    FaultCode,
    PowerCause,
    Refusal,
    Reply,
)
from firmware_protocol.tablelink import CommandReply

Answer: TypeAlias = dict[str, Any]
"""A response of the control socket: names and plain JSON values."""


class CommandRefusal(Exception):
    """Raised by a mechanism that rejects a command; the reply is REFUSED."""

    def __init__(self, why: Refusal, arg: int = 0) -> None:
        super().__init__(why.name, arg)
        self.why = why
        self.arg = arg


class CannotDo(Exception):
    """A control request is impossible now: what is impossible, and what is allowed instead."""


class Peer(Protocol):
    """The other end of a port: a device, or an echo in a test."""

    def receive(self, data: bytes, now: int) -> None:
        """Handle bytes from the host."""

    def wake(self, now: int) -> None:
        """Do what is due."""

    def due(self) -> int | None:
        """When wake() must be called next; None: only after another call."""

    def take(self) -> bytes:
        """Returns the buffered bytes for the host, and empties the buffer."""


class DeviceCore(DeviceContext, Protocol):
    """The device, as its commands use it."""

    cause: PowerCause
    ring: Ring
    records: RecordSender
    mechanism: Mechanism
    faulty: bool

    def find_faults(self, now: int) -> dict[FaultCode, int]: ...

    def report(self, code: FaultCode, arg: int, now: int) -> bool: ...

    def reply(self, session: DeviceSession, reply: CommandReply, now: int) -> None: ...


class RingPosition(Protocol):
    """The name of a ring, and its last record."""

    @property
    def epoch(self) -> int: ...
    @property
    def head(self) -> int: ...


class CoreServices(Protocol):
    """The services of the core for its mechanism."""

    @property
    def ring(self) -> RingPosition:
        """The ring that record() commits to."""

    def record(self, event: Event, now: int) -> bool:
        """Commit this event to the ring durably; the core sends it within the window. Returns False
        without side effects if the ring is full; the device is locked then."""

    def next_number(self, name: str) -> int:
        """Count up a stored number ("loading", "shuffle"), and return it; the first is 1."""

    def draw(self, size: int) -> bytes:
        """Returns random bytes for keys and salts."""

    def reread(self, epoch: int, seq: int) -> bytes:
        """The 56 bytes of a record. Raises CommandRefusal(NOT_KEPT) unless it is one of the last
        64."""

    def broken(self, name: str) -> bool:
        """Whether this break is switched on."""

    def full(self) -> bool:
        """Whether the ring is full up to its spare slots."""

    def save(self, name: str, data: bytes) -> None:
        """Store state durably, such as the cards in the shoe."""

    def load(self, name: str) -> bytes:
        """Returns the stored state of this name; b"" if nothing is stored."""


class RequestHandler(Protocol):
    """Handles requests that do not depend on the class: switches, breaks, the ring's memory."""

    def started(self, now: int) -> None:
        """Called after the device and its mechanism have started."""

    def handle(self, request: ControlRequest, now: int) -> Answer | None:
        """Carry out a request. Returns None if the mechanism handles it. Raises CannotDo if it is
        impossible now."""


class Mechanism(Protocol):
    """One class of device: cards, motors, buttons and lamps, without the wire."""

    device_class: DeviceClass
    capabilities: Capabilities

    def start(self, desk: CoreServices, now: int) -> None:
        """Power is on, and POWER is recorded."""

    def command(self, command: Command, now: int) -> Reply:
        """Execute a command of this class, and return its reply. INFO, RESUME and SELFTEST are
        handled by the core, which also checks form, repeats and NOT_RESUMED. Raises
        CommandRefusal."""

    def safe(self, now: int) -> None:
        """Lock and disarm, because there is no host or the ring is full. Lamps keep their lease."""

    def state(self) -> DeviceState:
        """The flags LOCKED, OPEN, JAMMED, RUNNING and FAULTY; the core adds the others."""

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        """Returns the faults, the worst first; empty without a fault."""

    def request(self, request: ControlRequest, now: int) -> Answer:
        """Carry out a control request. Raises CannotDo if it is impossible now."""

    def wake(self, now: int) -> None:
        """Do what is due: motors, contacts, leases."""

    def due(self) -> int | None:
        """When wake() must be called next; None: only after another call."""
