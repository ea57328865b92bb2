"""What the table hears, and with what: the words that its gateway and its loop share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from controller.audit.format.records import DeviceCursor, Entry
from controller.procedure.model import events as e
from controller.procedure.model.events import Actor, Device, Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State
from controller.table.memory import (
    NO_ARMS,
    NO_TROUBLES,
    NOTHING_KNOWN,
    Arms,
    Recall,
    Trouble,
    Troubles,
    Vault,
)

Data: TypeAlias = Mapping[str, Any]
"""The `data` of a record about a device: `what` first, then its fields."""

SHOE: Final = Actor("device", "shoe")
SHUFFLER: Final = Actor("device", "shuffler")
CONTROLLER: Final = Actor("device", "controller")


def seat_actor(seat: int) -> Actor:
    """Who presses a seat's buttons."""
    return Actor("player", f"seat-{seat}", seat)


class House(Struct, frozen=True):
    """What the table's configuration says of its devices."""

    min_confidence: int = 80
    """Percent. A card that is read less surely is entered by the dealer."""
    standing: Mapping[int, tuple[tuple[e.Bet, int], ...]] = MappingProxyType({})
    """What a seat's bet button places, bet by bet."""
    backs: tuple[int, ...] = ()
    """The makers' numbers of the backs of this table's batches; empty: any one."""


class Now(Struct, frozen=True):
    """All that the table knows, as far as it is in the record."""

    state: State = State()
    troubles: Troubles = NO_TROUBLES
    """What is wrong with its devices."""
    recall: Recall = NOTHING_KNOWN
    """What it remembers beside the state."""
    arms: Arms = NO_ARMS
    """Which buttons count."""


class Heard(Struct, frozen=True):
    """What something comes to that happened at the table."""

    events: tuple[Event, ...] = ()
    """For the procedure, one after the other; those after the first only as long as each is
    taken."""
    sealed: str = ""
    """Of a card that came face down: of the first event."""
    notes: tuple[Entry, ...] = ()
    """For the record alone."""
    wrong: tuple[Trouble, ...] = ()
    """What is wrong with a device from now on."""
    right: tuple[Trouble, ...] = ()
    """What is wrong no longer; why it was does not matter."""
    twin: bool = False
    """The shoe calls a card one too many."""


class Source(Struct, frozen=True):
    """Whose event it is, and which record of its log."""

    device: Device
    cursor: DeviceCursor

    @property
    def serial(self) -> str:
        return self.cursor.device


class Ear(Struct, frozen=True):
    """What is listened with."""

    game: Game
    house: House
    vault: Vault
    shuffler: bool = False
    """The table has one."""
