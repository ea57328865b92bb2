"""From what devices tell to what happens at the table: the only place that knows both vocabularies.

A table of functions, one for each type of device event. Each looks at what the table knows now and
says what the event is to the procedure, what is recorded beside it, and what is wrong with the
device from now on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from controller.procedure.model.state import Step
from controller.table.intake import shoe as shoe_words
from controller.table.intake import shuffler as shuffler_words
from controller.table.intake import station as station_words
from controller.table.intake.context import DeviceSource, IntakeContext, TableInput, TableSnapshot
from controller.table.intake.shoe import device_fault, noted
from controller.table.memory import DeviceFault
from drivers.devices import DeviceEvent, Faulted, Tampered, shoe, shuffler, station
from firmware_protocol.messages.enums import FaultCode

Reader: TypeAlias = Callable[[IntakeContext, TableSnapshot, Any, DeviceSource], TableInput]


def device_input(
    ear: IntakeContext, now: TableSnapshot, told: DeviceEvent, source: DeviceSource
) -> TableInput:
    """What the event comes to now."""
    heard = READERS.get(type(told))
    return noted(told, source, now) if heard is None else heard(ear, now, told, source)


# --- all devices ------------------------------------------------------------------------------

_HARMLESS: Final = frozenset({FaultCode.NONE, FaultCode.LAMPS, FaultCode.CLOCK})


def _fault(
    ear: IntakeContext, now: TableSnapshot, told: Faulted, source: DeviceSource
) -> TableInput:
    """A fault of what moves or reads cards stops the table; a lamp's does not."""
    note = noted(told, source, now)
    if source.device == "station" or told.code in _HARMLESS:
        return note
    if told.code is FaultCode.ABORTED:
        return _aborted(now, source, note)
    why = f"it reports a fault ({told.code.name.lower()})"
    return TableInput(notes=note.notes, wrong=(device_fault(source, "fault", why),))


def _aborted(now: TableSnapshot, source: DeviceSource, note: TableInput) -> TableInput:
    """The order of the cards is known to nobody: people take them out and begin anew."""
    if now.state.step is not Step.SHUFFLING:
        return note
    why = "its shuffle was broken off"
    return TableInput(notes=note.notes, wrong=(device_fault(source, "aborted", why),))


def _tampered(
    ear: IntakeContext, now: TableSnapshot, told: Tampered, source: DeviceSource
) -> TableInput:
    note = noted(told, source, now)
    if source.device == "station":
        return note
    what = told.source.name.lower()
    found = (DeviceFault(source.device, source.serial, "tampering", what, f"tampering ({what})"),)
    if told.active:
        return TableInput(notes=note.notes, wrong=found)
    return TableInput(notes=note.notes, right=found)


READERS: Final[Mapping[type[DeviceEvent], Reader]] = MappingProxyType(
    {
        shoe.ShoeCardRead: shoe_words.card,
        shoe.ReadFailed: shoe_words.unread,
        shoe.CutCardCame: shoe_words.cut_card,
        shoe.CardRetracted: shoe_words.retracted,
        shoe.ShoeLoaded: shoe_words.loaded,
        shoe.CoverMoved: shoe_words.cover,
        shoe.ShoeJammed: shoe_words.jam,
        shuffler.ShuffleStarted: shuffler_words.started,
        shuffler.ShuffleDone: shuffler_words.done,
        shuffler.CountWrong: shuffler_words.miscounted,
        shuffler.DoorMoved: shuffler_words.door,
        shuffler.ShufflerJammed: shuffler_words.jam,
        station.ButtonPressed: station_words.pressed,
        Faulted: _fault,
        Tampered: _tampered,
    }
)
"""Of every other type, and of a release of a button, the record takes note and nobody else."""
