"""What an event of the link means for the state of its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from drivers.devices import Trigger
from drivers.session.lookup import WantedDevice, identity_of
from firmware_protocol.host import (
    HandshakeFailed,
    HelloReceived,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    RecordMissing,
    RingHeld,
    RingResumed,
)
from firmware_protocol.messages import (
    BadKey,
    HandshakeNotAuthentic,
    NoCommonVersion,
    SchemaDiffers,
    WeakKey,
    WrongDevice,
)

DISPROVING: Final = (
    BadKey,
    HandshakeNotAuthentic,
    NoCommonVersion,
    SchemaDiffers,
    WeakKey,
    WrongDevice,
)
"""After these errors an immediate retry would fail in the same way."""


def trigger_of(event: LinkEvent, wanted: WantedDevice) -> tuple[Trigger, str] | None:
    """The trigger and its reason as text; None for an event that changes no state."""
    find = _TRIGGERS.get(type(event))
    return None if find is None else find(event, wanted)


def _greeted(event: HelloReceived, wanted: WantedDevice) -> tuple[Trigger, str]:
    found, expected = identity_of(event.answer), wanted.identity
    if found == expected:
        return Trigger.GREETED, "it has introduced itself"
    also = " with another key" if found.serial == expected.serial else ""
    name = f"{found.device_class.name.lower()} {found.serial}"
    return Trigger.SWAPPED, f"{name}{also} is there"


def _turned_away(event: HandshakeFailed, _: WantedDevice) -> tuple[Trigger, str]:
    disproved = isinstance(event.error, DISPROVING)
    return Trigger.DISPROVED if disproved else Trigger.TURNED_AWAY, str(event.error)


def _session_began(event: LinkSessionStarted, _: WantedDevice) -> tuple[Trigger, str]:
    return Trigger.REKEYED if event.rekeyed else Trigger.SESSION_BEGAN, "it has proven itself"


def _resumed(event: RingResumed, _: WantedDevice) -> tuple[Trigger, str]:
    return Trigger.RESUMED, f"its ring goes up to {event.head}"


def _held(event: RingHeld, _: WantedDevice) -> tuple[Trigger, str]:
    return Trigger.HELD, f"{event.verdict.name}: two people decide"


def _behind(event: RecordMissing, _: WantedDevice) -> tuple[Trigger, str]:
    why = f"its ring goes up to {event.head}, and record {event.next} does not come"
    return Trigger.BEHIND, why


def _session_ended(event: LinkSessionEnded, _: WantedDevice) -> tuple[Trigger, str]:
    return Trigger.SESSION_ENDED, f"the session is over: {event.why.value}"


_TRIGGERS: Final[dict[type, Callable[[Any, WantedDevice], tuple[Trigger, str]]]] = {
    HelloReceived: _greeted,
    HandshakeFailed: _turned_away,
    LinkSessionStarted: _session_began,
    RingResumed: _resumed,
    RingHeld: _held,
    RecordMissing: _behind,
    LinkSessionEnded: _session_ended,
}
