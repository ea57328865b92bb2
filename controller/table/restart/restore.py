"""Where the table goes on after a start: all of it from the record.

found = recover(opening, procedure, serials)
found.now               the state, what is remembered beside it, and that devices are away
found.hidden            cards that lie face down: the shoe is asked for them again
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from controller.audit.format.records import DeviceCursor, Record
from controller.audit.format.segments import numbers
from controller.audit.log import RecordOpening
from controller.audit.read.reader import read_segment, record_of
from controller.audit.replay import decode_event, replay_opening
from controller.people import NO_SIGN_INS, SignInState, restore_sign_ins
from controller.procedure.engine import Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Prompt
from controller.procedure.model.events import Device
from controller.procedure.model.holds import BEFORE
from controller.procedure.model.state import State, Step
from controller.table.intake import CONTROLLER, TableSnapshot, face_down
from controller.table.loop import ANOTHER_CARD, StoredPosition
from controller.table.memory import (
    NO_FAULTS,
    ButtonTokens,
    DeviceFault,
    DeviceFaults,
    TableMemory,
    memory_from,
    payment_prompt,
    without_holds,
)
from firmware_protocol.host import RecordCursor

MAX_SEGMENTS: Final = 16
"""So far back a card that lies face down, and the loading that it came from, are looked for."""


class FaceDownCard(Struct, frozen=True):
    """A card that lies face down, and which record of the shoe told it."""

    commitment: str
    cursor: DeviceCursor | None
    """None: the record does not say."""
    seq: int = 0
    """Of our own record, which has it sealed."""
    wrong: int = 0
    """So often somebody has said that it is another card."""


class DeviceHistory(Struct, frozen=True):
    """What the record knows of a device beside its log."""

    firmware: bytes = b""
    boot: int = 0


class RestoredTable(Struct, frozen=True):
    """What a start begins with."""

    now: TableSnapshot
    last: State | None
    """The procedure's state as the record has it; None before the first decision."""
    hidden: tuple[FaceDownCard, ...]
    repeated: Prompt | None
    """The payment that was shown when the controller ended."""
    restarted: events.ControllerRestarted | None
    """What is to be recorded first: a round or a shoe was open."""
    stood: Mapping[str, StoredPosition]
    """How far each device's log goes, by serial number."""
    known: Mapping[str, DeviceHistory]
    standing: SignInState = NO_SIGN_INS
    """Who was signed in, and whose PIN is not looked at for a while."""


def restore(
    opening: RecordOpening, procedure: Procedure, devices: Iterable[tuple[Device, str]]
) -> RestoredTable:
    """RecordProblem where the record does not say how the table stands."""
    folded = replay_opening(opening, procedure)
    s, every = folded.now, tuple(devices)
    seq = 0 if opening.last is None else opening.last.seq
    now = TableSnapshot(s, devices_away(every), _recall(opening), ButtonTokens(seq))
    payment = payment_prompt(without_holds(s), procedure.shows(without_holds(s)))
    return RestoredTable(
        now,
        folded.state,
        tuple(_hidden(opening, one) for one in sorted(face_down(s))),
        payment,
        events.ControllerRestarted(CONTROLLER) if was_open(s) else None,
        MappingProxyType({serial: stored_position(opening, serial) for _, serial in every}),
        MappingProxyType({serial: _known(opening, serial) for _, serial in every}),
        restore_sign_ins(opening),
    )


def was_open(s: State) -> bool:
    """Cards or wagers lie on the felt, or a shoe is in play. Where the felt is to be compared
    already, it is not compared twice."""
    if s.step in (Step.CLOSED, Step.FELT):
        return False
    return s.step not in BEFORE or bool(s.seats)


def devices_away(devices: Iterable[tuple[Device, str]]) -> DeviceFaults:
    """At a start each device is still to be found. Nobody is told before that takes too long."""
    every = tuple(DeviceFault(device, serial, "link") for device, serial in devices)
    return DeviceFaults(every, awaited=frozenset(one.key for one in every)) if every else NO_FAULTS


def stored_position(opening: RecordOpening, serial: str) -> StoredPosition:
    found = opening.cursor(serial)
    if found is None or not found.epoch:
        return StoredPosition()
    chains = opening.chains(serial)
    recent = {seq: bytes.fromhex(chain) for seq, chain in chains.items() if seq <= found.seq}
    return StoredPosition(RecordCursor(found.epoch, found.seq, bytes.fromhex(found.chain)), recent)


def _known(opening: RecordOpening, serial: str) -> DeviceHistory:
    cursor = opening.cursor(serial)
    firmware = b""
    for record in opening.records:
        if record.kind == "link":
            data = msgspec.json.decode(record.data)
            if (data.get("what"), data.get("device")) == ("Informed", serial):
                firmware = bytes.fromhex(data["firmware"])
    return DeviceHistory(firmware, 0 if cursor is None else cursor.boot)


# --- further back -----------------------------------------------------------------------------


def _backwards(opening: RecordOpening) -> Iterator[list[Record]]:
    """The records of each segment, the last segment first."""
    if opening.segment is None:
        return
    yield opening.records
    left = [number for number in numbers(opening.record) if number < opening.segment.number]
    for number in reversed(left[1 - MAX_SEGMENTS :]):
        yield _records(opening.record, number)


def _records(record: Path, number: int) -> list[Record]:
    segment = read_segment(record, number)
    return [record_of(segment.file, frame) for frame in segment.frames]


def _hidden(opening: RecordOpening, commitment: str) -> FaceDownCard:
    """The last record of the shoe that told this card."""
    wanted = commitment.encode()
    wrong = 0
    for records in _backwards(opening):
        for record in reversed(records):
            wrong += _says_another(record)
            if record.kind != "decision" or record.cursor is None:
                continue
            if wanted in bytes(record.data) and _told(record) == commitment:
                return FaceDownCard(commitment, record.cursor, record.seq, wrong)
    return FaceDownCard(commitment, None)


def _says_another(record: Record) -> bool:
    """Of the card that lies beside the shoe, of which there is one at a time."""
    if record.kind != "fault":
        return False
    data: Any = msgspec.json.decode(record.data)
    return bool(data.get("what") == ANOTHER_CARD)


def _told(record: Record) -> str:
    """The commitment of the card that came face down."""
    event = decode_event(record.data).event
    return event.commitment if isinstance(event, events.HoleDealt | events.ErrorCardDrawn) else ""


def _recall(opening: RecordOpening) -> TableMemory:
    """From the batch before the shoe's last one on, for batches take turns; or from where other
    decks came."""
    found: list[Record] = []
    loadings = 0
    for records in _backwards(opening):
        found = [*records, *found]
        loadings += sum(_loads(record) for record in records)
        if loadings > 1:
            break
    return memory_from(found)


def _loads(record: Record) -> bool:
    """Of another batch than was in play."""
    if record.kind != "device":
        return False
    data: Any = msgspec.json.decode(record.data)
    return data.get("what") == "ShoeLoaded" and not data.get("again")
