"""What the table hears, and with what: the words that its gateway and its loop share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from controller.audit.format.records import DeviceCursor, RecordEntry
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
    TableMemory,
)

Data: TypeAlias = Mapping[str, Any]
"""The `data` of a record about a device: `what` first, then its fields."""

SHOE: Final = Actor("device", "shoe")
SHUFFLER: Final = Actor("device", "shuffler")
CONTROLLER: Final = Actor("device", "controller")


def seat_actor(seat: int) -> Actor:
    """Who presses a seat's buttons."""
    return Actor("player", f"seat-{seat}", seat)


class DeviceSettings(Struct, frozen=True):
    """What the table's configuration says of its devices."""

    min_confidence: int = 80
    """Percent. A card that is read less surely is entered by the dealer."""
    standing: Mapping[int, tuple[tuple[e.Bet, int], ...]] = MappingProxyType({})
    """What a seat's bet button places, bet by bet."""
    backs: tuple[int, ...] = ()
    """The makers' numbers of the backs of this table's batches; empty: any one."""


class TableSnapshot(Struct, frozen=True):
    """All that the table knows, as far as it is in the record."""

    state: State = State()
    troubles: DeviceFaults = NO_FAULTS
    """What is wrong with its devices."""
    recall: TableMemory = EMPTY_MEMORY
    """What it remembers beside the state."""
    arms: ButtonTokens = NO_TOKENS
    """Which buttons count."""


class TableInput(Struct, frozen=True):
    """What something comes to that happened at the table."""

    events: tuple[Event, ...] = ()
    """For the procedure, one after the other; those after the first only as long as each is
    taken."""
    sealed: str = ""
    """Of a card that came face down: of the first event."""
    notes: tuple[RecordEntry, ...] = ()
    """For the record alone."""
    wrong: tuple[DeviceFault, ...] = ()
    """What is wrong with a device from now on."""
    right: tuple[DeviceFault, ...] = ()
    """What is wrong no longer; why it was does not matter."""
    twin: bool = False
    """The shoe calls a card one too many."""


class DeviceSource(Struct, frozen=True):
    """Whose event it is, and which record of its log."""

    device: Device
    cursor: DeviceCursor

    @property
    def serial(self) -> str:
        return self.cursor.device


class IntakeContext(Struct, frozen=True):
    """What is listened with."""

    game: Game
    house: DeviceSettings
    vault: CardVault
    shuffler: bool = False
    """The table has one."""
