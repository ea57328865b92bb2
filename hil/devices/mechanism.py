"""The base class of the simulated mechanisms: request dispatch, stored state, pending events.

A mechanism stores its pending events before it records them, and removes them afterwards. After a
start, the events that the ring already holds are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from firmware_protocol.device import (
    Answer,
    CannotDo,
    CommandRefusal,
    ControlRequest,
    CoreServices,
    SetJam,
)
from firmware_protocol.messages import (
    EVENTS,
    REREAD_DEPTH,
    Capabilities,
    Command,
    DeviceClass,
    Event,
    FaultCode,
    JamCode,
    Refusal,
    Reply,
    ShoeJam,
    ShufflerJam,
)
from firmware_protocol.tablelink import EventRecord, decode_plaintext

_F = TypeVar("_F", bound=int)
CommandTable: TypeAlias = Mapping[type[Any], Callable[[Any, Any, int], Reply]]
RequestTable: TypeAlias = Mapping[type[Any], Callable[[Any, Any, int], Answer]]
MAX_PENDING: Final = 64
"""Events that a mechanism stores while the ring is full."""
POLL_US: Final = 100_000
"""Interval of the checks whether the ring has space again."""


class PendingEvents(Struct):
    events: list[tuple[int, bytes]] = []
    """Id and encoded fields of each."""
    epoch: int = 0
    head: int = 0
    """The last record of that ring when the first event was added; the event follows it."""

    @property
    def pending(self) -> PendingEvents:
        """Itself, as the whole state of a mechanism that stores nothing else."""
        return self

    def has_capacity(self, count: int) -> bool:
        return len(self.events) + count <= MAX_PENDING

    def require_capacity(self, count: int) -> None:
        """Raises CannotDo, without side effects, if `count` more events are too many."""
        if not self.has_capacity(count):
            raise CannotDo(
                "the ring is full, and no further event can be stored", "wait until it has space"
            )

    def add(self, core: CoreServices, *events: Event) -> None:
        if not self.events:
            self._mark(core)
        self.events += [(event.ID, event.encode()) for event in events]

    def record(self, core: CoreServices, now: int) -> bool:
        """Record the events in order. Returns False if the ring is full before the last one."""
        while self.events:
            # Removed before it is recorded: a full ring calls safe(), which may record too.
            first = ident, fields = self.events.pop(0)
            if not core.record(EVENTS[ident].decode(fields), now):
                if core.broken("full-forgets"):
                    continue
                self.events.insert(0, first)
                return False
            self._mark(core)
        return True

    def discard_recorded(self, core: CoreServices) -> None:
        """After a start: remove the events that were recorded before the power went."""
        for event in self._recorded(core):
            if self.events and self.events[0] == (event.ID, event.encode()):
                self.events.pop(0)
        self._mark(core)

    def _mark(self, core: CoreServices) -> None:
        self.epoch, self.head = core.ring.epoch, core.ring.head

    def _recorded(self, core: CoreServices) -> Iterator[Event]:
        ring = core.ring
        if ring.epoch != self.epoch:
            return
        for seq in range(max(self.head, ring.head - REREAD_DEPTH) + 1, ring.head + 1):
            record = decode_plaintext(core.reread(ring.epoch, seq), sender="device")
            if isinstance(record, EventRecord):
                yield record.event


def flag_set(kind: type[_F], flags: Mapping[_F, bool]) -> _F:
    """The union of the flags whose value is true."""
    return kind(sum(flag for flag, on in flags.items() if on))


class SimulatedMechanism:
    """Dispatches each request and command to its handler, stores the state, and records events.

    An event is stored as pending before it is recorded, so that a power cut or a full ring between
    the two does not lose it.
    """

    device_class: DeviceClass
    capabilities: Capabilities
    STATE: ClassVar[str]
    """Name under which the state is stored."""
    CONTENTS: ClassVar[type[Any]]
    """Type of the state: a Struct with an attribute `pending`."""
    COMMANDS: ClassVar[CommandTable]
    REQUESTS: ClassVar[RequestTable]
    _core: CoreServices
    _contents: Any
    _poll_at: int
    _written: bytes

    JAM: ClassVar[type[ShoeJam | ShufflerJam]]
    """The event of a jam, if the device moves cards."""

    # --- implemented by each class ---

    def _reset(self, now: int) -> None:
        """Set what is in RAM to its values at a start."""
        raise NotImplementedError

    def _flushed(self) -> None:
        """All pending events are recorded."""

    def _stick(self, code: JamCode, now: int) -> None:
        """Cards get stuck, or are freed."""

    @property
    def _pending(self) -> PendingEvents:
        found: PendingEvents = self._contents.pending
        return found

    # --- for the core ---

    def start(self, core: CoreServices, now: int) -> None:
        self._core = core
        self._poll_at = 0
        self._reset(now)
        self._written = core.load(self.STATE)
        self._contents = (
            msgspec.msgpack.decode(self._written, type=self.CONTENTS)
            if self._written
            else self.CONTENTS()
        )
        self._pending.discard_recorded(core)
        self._started(now)

    def _started(self, now: int) -> None:
        self._flush(now)

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        return ()  # the core reports the defects that requests have injected

    def command(self, command: Command, now: int) -> Reply:
        do = self.COMMANDS.get(type(command))
        if do is None:
            raise CommandRefusal(Refusal.UNKNOWN)
        return do(self, command, now)

    def request(self, request: ControlRequest, now: int) -> Answer:
        do = self.REQUESTS.get(type(request))
        if do is None:
            name = self.device_class.name.lower()
            allowed = ", ".join(map(_verb, self.REQUESTS))
            raise CannotDo(f"a {name} has no {_verb(type(request))}", allowed)
        return do(self, request, now)

    # --- events ---

    def _report(self, now: int, *events: Event) -> None:
        self._pending.add(self._core, *events)
        self._store()
        self._flush(now)

    def _flush(self, now: int) -> None:
        self._poll_at = now + POLL_US
        if self._pending.record(self._core, now):
            self._flushed()
        self._store()

    def _poll(self, now: int) -> None:
        if self._pending.events and self._poll_at <= now:
            self._flush(now)

    def _poll_due(self) -> list[int]:
        return [self._poll_at] if self._pending.events else []

    def _encode(self) -> bytes:
        return msgspec.msgpack.encode(self._contents)

    def _store(self) -> None:
        """Store the state durably if it has changed."""
        encoded = self._encode()
        if encoded != self._written:
            self._core.save(self.STATE, encoded)
            self._written = encoded

    def _jam(self, request: SetJam, now: int) -> Answer:
        code = JamCode.CLEARED if request.code is None else JamCode[request.code.upper()]
        if code == self._contents.jam:
            return {"changed": False}
        self._pending.require_capacity(1)
        self._stick(code, now)
        self._contents.jam = code
        self._report(now, self.JAM(code))
        return {"changed": True}

    def _ignore(self, request: ControlRequest, now: int) -> Answer:
        """Accept a request that changes nothing in this class of device."""
        return {}


def _verb(request: type[Any]) -> str:
    """The verb of a request on the control socket."""
    return str(request.__struct_config__.tag)
