"""What devices told, as it is recorded where the procedure takes no part in it, or not in all.

Of a card that nobody may see there is nothing here but its place in the shoe.
"""

from __future__ import annotations

from enum import Enum, Flag
from typing import Any, Final

from controller.audit.format.records import RecordActor, RecordEntry
from controller.table.intake.context import DeviceSource
from drivers.devices import DeviceEvent, Sealed
from firmware_protocol.messages.enums import CardFlags
from firmware_protocol.messages.shoe import CardRead

_SEEN_FLAGS: Final = ~CardFlags.DUPLICATE
"""That a card is a duplicate may tell another one, which lies face down."""


def plain(value: Any) -> Any:
    """A value as records have it: numbers, words, hexadecimal."""
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


def note(source: DeviceSource, round_: int, what: str, /, **fields: Any) -> RecordEntry:
    """Something that a device told, in these words. Its cursor goes with whatever is recorded of
    it first."""
    data = {"what": what, **{name: plain(value) for name, value in fields.items()}}
    return RecordEntry("device", RecordActor("device", source.device), data, round_)


def note_of(told: DeviceEvent, source: DeviceSource, round_: int, /, **more: Any) -> RecordEntry:
    """All of what a device told. TypeError where something of it is sealed."""
    names = (name for name in told.__struct_fields__ if name != "origin")
    fields = {name: getattr(told, name) for name in names}
    return note(source, round_, type(told).__name__, **fields, **more)


def card_seen(source: DeviceSource, round_: int, read: CardRead) -> RecordEntry:
    """How a card was read that lies face up."""
    return note(
        source,
        round_,
        "CardSeen",
        shoe=read.shoe,
        pos=read.pos,
        card=read.card,
        confidence=read.confidence,
        alternative=read.alternative,
        flags=read.flags & _SEEN_FLAGS,
        dwell=read.dwell,
        back=read.back,
    )
