"""The table's state, device settings and input, as the intake and the loop share them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, Flag
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from controller.audit.format.records import DeviceCursor, RecordActor, RecordEntry
from controller.procedure.model import events as e
from controller.procedure.model.events import Actor, Device, Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.table.memory import (
    EMPTY_MEMORY,
    NO_FAULTS,
    NO_TOKENS,
    ButtonTokens,
    CardVault,
    DeviceFault,
    DeviceFaults,
    FaultCause,
    TableMemory,
)
from drivers.devices import DeviceEvent, Sealed
from firmware_protocol.messages import CardFlags, CardRead

SHOE: Final = Actor("device", "shoe")
SHUFFLER: Final = Actor("device", "shuffler")
CONTROLLER: Final = Actor("device", "controller")
_RECORDED_FLAGS: Final = ~CardFlags.DUPLICATE
"""DUPLICATE is not recorded: it could reveal a card that lies face down."""


class DeviceSettings(Struct, frozen=True):
    """Settings of the devices, from the table's configuration."""

    min_confidence: int = 80
    """Percent. A card that is read with less is entered by the dealer."""
    standing: Mapping[int, tuple[tuple[e.Bet, int], ...]] = MappingProxyType({})
    """The wagers that a seat's bet button places, bet by bet."""
    backs: tuple[int, ...] = ()
    """The makers' numbers of the allowed card backs; empty: any."""


class TableSnapshot(Struct, frozen=True):
    """The complete state of the table after the last durable record."""

    state: State = State()
    faults: DeviceFaults = NO_FAULTS
    memory: TableMemory = EMPTY_MEMORY
    """What is remembered beside the procedure's state."""
    arms: ButtonTokens = NO_TOKENS
    """The buttons that are armed, with their tokens."""


class TableInput(Struct, frozen=True):
    """The effect of a device event or a request on the table, before it is applied."""

    events: tuple[Event, ...] = ()
    """For the procedure, in order. The rest is skipped when one is refused."""
    sealed: str = ""
    """The sealed copy of a card that came face down, recorded with the first event."""
    notes: tuple[RecordEntry, ...] = ()
    """Entries for the record only."""
    wrong: tuple[DeviceFault, ...] = ()
    """Device faults that begin."""
    right: tuple[DeviceFault, ...] = ()
    """Device faults that end; their `why` is ignored."""
    twin: bool = False
    """The shoe reports this card as a duplicate."""


class DeviceSource(Struct, frozen=True):
    """The device that sent an event, and the event's position in the device's log."""

    device: Device
    cursor: DeviceCursor

    def entry(self, round_: int, what: str, /, **fields: Any) -> RecordEntry:
        """A record entry named `what` about this device."""
        data = {"what": what, **{name: plain_value(value) for name, value in fields.items()}}
        return RecordEntry("device", RecordActor("device", self.device), data, round_)

    def entry_of(self, event: DeviceEvent, round_: int, /, **more: Any) -> RecordEntry:
        """A record entry with all fields of `event`. Raises TypeError if one is sealed."""
        names = (name for name in event.__struct_fields__ if name != "origin")
        fields = {name: getattr(event, name) for name in names}
        return self.entry(round_, type(event).__name__, **fields, **more)

    def card_entry(self, round_: int, read: CardRead) -> RecordEntry:
        """A record entry of a card that lies face up: how it was read."""
        return self.entry(
            round_,
            "CardSeen",
            shoe=read.shoe,
            pos=read.pos,
            card=read.card,
            confidence=read.confidence,
            alternative=read.alternative,
            flags=read.flags & _RECORDED_FLAGS,
            dwell=read.dwell,
            back=read.back,
        )

    def fault_input(
        self, cause: FaultCause, why: str, what: str = "", *, active: bool
    ) -> TableInput:
        """The input of a fault that begins or, unless `active`, ends."""
        found = (self.fault(cause, why, what),)
        return TableInput(wrong=found) if active else TableInput(right=found)

    def fault(self, cause: FaultCause, why: str = "", what: str = "") -> DeviceFault:
        return DeviceFault(self.device, self.cursor.device, cause, what, why)


class IntakeContext(Struct, frozen=True):
    """What does not change while the table runs."""

    game: Game
    settings: DeviceSettings
    vault: CardVault
    shuffler: bool = False
    """The table has a shuffler."""


def plain_value(value: Any) -> Any:
    """A field's value as it is recorded: a number, a word or hexadecimal digits."""
    match value:
        case Sealed():
            raise TypeError("a sealed value is not recorded")
        case Flag():
            return value.value
        case Enum():
            return value.name.lower()
        case bytes():
            return value.hex()
        case _:
            return value
