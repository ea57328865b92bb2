"""The base class of the simulated mechanisms: request dispatch, stored state, pending events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec

from firmware_protocol.device import Answer, CannotDo, CommandRefusal, ControlRequest, CoreServices
from firmware_protocol.messages import Command, DeviceClass, Event, Refusal, Reply
from hil.devices.pending_events import POLL_US, PendingEvents

_F = TypeVar("_F", bound=int)
CommandTable: TypeAlias = Mapping[type[Any], Callable[[Any, Any, int], Reply]]
RequestTable: TypeAlias = Mapping[type[Any], Callable[[Any, Any, int], Answer]]


def flag_set(kind: type[_F], flags: Mapping[_F, bool]) -> _F:
    """The union of the flags whose value is true."""
    return kind(sum(flag for flag, on in flags.items() if on))


class SimulatedMechanism:
    """Dispatches each request and command to its handler, stores the state, and records events.

    An event is stored as pending before it is recorded, so that a power cut or a full ring between
    the two does not lose it.
    """

    device_class: DeviceClass
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

    # --- implemented by each class ---

    def _reset(self, now: int) -> None:
        """Set what is in RAM to its values at a start."""
        raise NotImplementedError

    def _flushed(self) -> None:
        """All pending events are recorded."""

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

    def _ignore(self, request: ControlRequest, now: int) -> Answer:
        """Accept a request that changes nothing in this class of device."""
        return {}


def _verb(request: type[Any]) -> str:
    """The verb of a request on the control socket."""
    return str(request.__struct_config__.tag)
