"""Opens the record of a table for a new boot: verifies, restores the table from it, starts the log.

log, found = open_record(parts, procedure)
found.now               the snapshot: state, memory, and all devices not found yet
found.hidden            the cards that lie face down, to be reread from the shoe
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import DeviceCursor, Record
from controller.audit.format.segments import numbers
from controller.audit.keys import changed_keys, check_table_key, with_keys
from controller.audit.log import Clock, Log, RecordOpening, SystemClock
from controller.audit.read.reader import read_segment, record_of
from controller.audit.replay import decode_event, identity_of, replay_opening
from controller.errors import UsageProblem
from controller.people import NO_SIGN_INS, SignInState, restore_sign_ins
from controller.procedure.engine import Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Prompt
from controller.procedure.model.events import Device
from controller.procedure.model.holds import BEFORE
from controller.procedure.model.state import State, Step
from controller.table.intake import CONTROLLER, TableSnapshot, face_down
from controller.table.loop import ANOTHER_CARD, StoredPosition, TableParts
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
"""Maximum number of segments that are searched for a face-down card and its loading."""


class FaceDownCard(Struct, frozen=True):
    """A card that lies face down, with its position in the shoe's log."""

    commitment: str
    cursor: DeviceCursor | None
    """None if the record does not contain it."""
    seq: int = 0
    """Sequence number of the table's record entry with the sealed copy."""
    wrong: int = 0
    """How often a wrong card was named for it."""


class DeviceHistory(Struct, frozen=True):
    """Firmware and boot number of a device, from the record."""

    firmware: bytes = b""
    boot: int = 0


class RestoredTable(Struct, frozen=True):
    """The restored table."""

    now: TableSnapshot
    last: State | None
    """The state after the last recorded decision; None before the first one."""
    hidden: tuple[FaceDownCard, ...]
    repeated: Prompt | None
    """The payment that was shown when the controller stopped."""
    restarted: events.ControllerRestarted | None
    """The event to record first, if a round or a shoe was open."""
    positions: Mapping[str, StoredPosition]
    """The stored position of each device's log, by serial number."""
    known: Mapping[str, DeviceHistory]
    standing: SignInState = NO_SIGN_INS
    """Sign-ins, and delays after wrong PINs."""


def restore(
    opening: RecordOpening, procedure: Procedure, devices: Iterable[tuple[Device, str]]
) -> RestoredTable:
    """Restore the table. Raises RecordProblem if the record is not sufficient."""
    folded = replay_opening(opening, procedure)
    s, every = folded.now, tuple(devices)
    seq = 0 if opening.last is None else opening.last.seq
    now = TableSnapshot(s, devices_away(every), _memory(opening), ButtonTokens(seq))
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
    """Whether cards or wagers lie on the felt, or a shoe is in play, so that the felt must be
    compared. False if that comparison is already pending."""
    if s.step in (Step.CLOSED, Step.FELT):
        return False
    return s.step not in BEFORE or bool(s.seats)


def devices_away(devices: Iterable[tuple[Device, str]]) -> DeviceFaults:
    """The faults at a start: each device is still to be found, and reported only if that is
    late."""
    every = tuple(DeviceFault(device, serial, "link") for device, serial in devices)
    return DeviceFaults(every, awaited=frozenset(one.key for one in every)) if every else NO_FAULTS


def stored_position(opening: RecordOpening, serial: str) -> StoredPosition:
    found = opening.cursors.get(serial)
    if found is None or not found.epoch:
        return StoredPosition()
    chains = opening.chains(serial)
    recent = {seq: bytes.fromhex(chain) for seq, chain in chains.items() if seq <= found.seq}
    return StoredPosition(RecordCursor(found.epoch, found.seq, bytes.fromhex(found.chain)), recent)


def _known(opening: RecordOpening, serial: str) -> DeviceHistory:
    cursor = opening.cursors.get(serial)
    firmware = b""
    for record in opening.records:
        if record.kind == "link":
            data = msgspec.json.decode(record.data)
            if (data.get("what"), data.get("device")) == ("Informed", serial):
                firmware = bytes.fromhex(data["firmware"])
    return DeviceHistory(firmware, 0 if cursor is None else cursor.boot)


# --- further back -----------------------------------------------------------------------------


def _backwards(opening: RecordOpening) -> Iterator[list[Record]]:
    """The records of each segment, the newest segment first."""
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
    """Find the shoe's last record of this card."""
    wanted = commitment.encode()
    wrong = 0
    for records in _backwards(opening):
        for record in reversed(records):
            wrong += _names_wrong_card(record)
            if record.kind != "decision" or record.cursor is None:
                continue
            if wanted in bytes(record.data) and _commitment(record) == commitment:
                return FaceDownCard(commitment, record.cursor, record.seq, wrong)
    return FaceDownCard(commitment, None)


def _names_wrong_card(record: Record) -> bool:
    """Whether a wrong card was named for the card beside the shoe, of which there is only one."""
    if record.kind != "fault":
        return False
    data: Any = msgspec.json.decode(record.data)
    return bool(data.get("what") == ANOTHER_CARD)


def _commitment(record: Record) -> str:
    """Returns the commitment of a card that came face down; else empty."""
    event = decode_event(record).event
    return event.commitment if isinstance(event, events.HoleDealt | events.ErrorCardDrawn) else ""


def _memory(opening: RecordOpening) -> TableMemory:
    """Rebuild the memory from the last two batches, since batches alternate."""
    found: list[Record] = []
    loadings = 0
    for records in _backwards(opening):
        found = [*records, *found]
        loadings += sum(_loads(record) for record in records)
        if loadings > 1:
            break
    return memory_from(found)


def _loads(record: Record) -> bool:
    """Whether a new batch was loaded."""
    if record.kind != "device":
        return False
    data: Any = msgspec.json.decode(record.data)
    return data.get("what") == "ShoeLoaded" and not data.get("again")


_log: Final = structlog.get_logger("table")

MAX_BEHIND: Final = timedelta(minutes=1)
"""A clock that is less behind the record was set while the controller was down, which is recorded.
A clock that is further behind is wrong now, or was wrong before."""


class ClockBehind(UsageProblem):
    """The machine's clock is before the record's last entry."""


def open_record(
    parts: TableParts,
    procedure: Procedure,
    utc: Clock | None = None,
    believed: tuple[str, str] | None = None,
    *,
    debuggable: bool = False,
) -> tuple[Log, RestoredTable]:
    """Open the record, and restore the table from it. `believed` are two people who confirm that
    the clock is right although the record is ahead of it. `debuggable` is recorded. Raises
    RecordProblem or ClockBehind; the record is closed then."""
    opening = RecordOpening.at(parts.record, table=parts.name)
    try:
        check_table_key(opening.record, opening.opened(), parts.keys.table)
        behind = _behind(opening, utc or SystemClock())
        if believed is None and behind is not None:
            raise behind
        devices = [(one.device, one.serial) for one in parts.devices]
        found = restore(opening, procedure, devices)
        hole, surveillance = parts.keys.hole, parts.keys.surveillance
        identity = with_keys(identity_of(parts.name, parts.what), hole, surveillance)
        identity = replace(identity, debuggable=debuggable)
        for words in changed_keys(opening.opened(), hole, surveillance):
            _log.warning("another key", what=words)
    except BaseException:
        opening.close()
        raise
    opening.believed = None if behind is None else believed
    log = Log.begin(
        opening,
        identity,
        parts.keys.table,
        state=found.last,
        clock=utc,
        day=parts.day,
        size=parts.size,
    )
    return log, found


def _behind(opening: RecordOpening, utc: Clock) -> ClockBehind | None:
    """The problem if the clock is too far behind. Rate limits and readers depend on the times."""
    last = opening.last_not_snapshot
    now = utc().utc
    if last is None or timedelta(microseconds=last.utc - now) <= MAX_BEHIND:
        return None
    what = f"says {_when(now)}, but the record goes to {_when(last.utc)}"
    allowed = "a clock that is set right; if it is right now: --believe-clock, once"
    return ClockBehind("the machine's clock", what, allowed)


def _when(utc: int) -> str:
    return datetime.fromtimestamp(utc // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
