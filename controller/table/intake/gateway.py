"""Translates device events into table input. Only here do both vocabularies meet.

READERS has one function for each type of device event. A reader is pure: it gets the snapshot of
the table and returns the events for the procedure, the entries for the record, and the device
faults that begin or end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from controller.procedure.model.state import Step
from controller.table.intake import shoe, shuffler, station
from controller.table.intake.context import (
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from drivers import devices
from drivers.devices import DeviceEvent, Faulted, Tampered
from firmware_protocol.messages import FaultCode

Reader: TypeAlias = Callable[[IntakeContext, TableSnapshot, Any, DeviceSource], TableInput]


def device_input(
    context: IntakeContext, now: TableSnapshot, event: DeviceEvent, source: DeviceSource
) -> TableInput:
    """Translate a device event at the state `now`."""
    reader = READERS.get(type(event))
    if reader is None:
        return TableInput(notes=(source.entry_of(event, now.state.round),))
    return reader(context, now, event, source)


# --- events of every device -------------------------------------------------------------------

_HARMLESS: Final = frozenset({FaultCode.NONE, FaultCode.LAMPS, FaultCode.CLOCK})


def _faulted(
    context: IntakeContext, now: TableSnapshot, event: Faulted, source: DeviceSource
) -> TableInput:
    """A fault of moving or reading cards stops the table; a fault of lamps or clock does not."""
    notes = (source.entry_of(event, now.state.round),)
    if source.device == "station" or event.code in _HARMLESS:
        return TableInput(notes=notes)
    if event.code is not FaultCode.ABORTED:
        why = f"it reports a fault ({event.code.name.lower()})"
        return TableInput(notes=notes, wrong=(source.fault("fault", why),))
    if now.state.step is not Step.SHUFFLING:
        return TableInput(notes=notes)
    # The order of the cards is unknown: they are taken out and shuffled again.
    return TableInput(notes=notes, wrong=(source.fault("aborted", "its shuffle was broken off"),))


def _tampered(
    context: IntakeContext, now: TableSnapshot, event: Tampered, source: DeviceSource
) -> TableInput:
    notes = (source.entry_of(event, now.state.round),)
    if source.device == "station":
        return TableInput(notes=notes)
    what = event.source.name.lower()
    found = (source.fault("tampering", f"tampering ({what})", what),)
    if event.active:
        return TableInput(notes=notes, wrong=found)
    return TableInput(notes=notes, right=found)


READERS: Final[Mapping[type[DeviceEvent], Reader]] = MappingProxyType(
    {
        devices.ShoeCardRead: shoe.card,
        devices.ReadFailed: shoe.unread,
        devices.CutCardCame: shoe.cut_card,
        devices.CardRetracted: shoe.retracted,
        devices.ShoeLoaded: shoe.loaded,
        devices.CoverMoved: shoe.cover,
        devices.ShoeJammed: shoe.jam,
        devices.ShuffleStarted: shuffler.started,
        devices.ShuffleDone: shuffler.done,
        devices.CountWrong: shuffler.miscounted,
        devices.DoorMoved: shuffler.door,
        devices.ShufflerJammed: shuffler.jam,
        devices.ButtonPressed: station.pressed,
        Faulted: _faulted,
        Tampered: _tampered,
    }
)
"""Events of all other types are recorded only."""
