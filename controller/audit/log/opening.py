"""Opening a record for writing: read what is there, quarantine the tail, then begin a boot.

opening = RecordOpening.at(directory, table="mega-1")  # read only, but for the lock
state = replay_opening(opening, procedure).state
log = Log.begin(opening, identity, table_key, state=state)
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from controller.audit.errors import (
    NoRecord,
    OtherTable,
    RecordDamaged,
    RecordsMissing,
    cannot_read,
    disk_fails,
)
from controller.audit.files import (
    DIRECTORY_MODE,
    LOCK,
    Disk,
    WriterLock,
    acquire_writer_lock,
    read_file,
    release_lock,
    remove_created,
    stored_origin,
    write_all,
    write_atomically,
)
from controller.audit.format.records import (
    DeviceCursor,
    NoteData,
    OpenedData,
    Record,
    Snapshot,
    TailData,
    encode,
    table_of,
)
from controller.audit.format.segments import DIRECTORY, LARGEST, SPARE, numbers, segment_file
from controller.audit.format.tail import WRONG, Tail, TailVerdict
from controller.audit.read.reader import (
    ASK,
    RecordSegment,
    read_segment,
    record_of,
    tail_problem,
)
from controller.errors import printable

COSIGNED: Final = "cosigned"
_OURS: Final = frozenset({LOCK, DIRECTORY, "keys"})
"""What a record's directory may contain before its first segment; demo keys too."""


class RecordOpening:
    """The last segment of a record, read and validated, and the writer lock."""

    def __init__(self, record: Path, disk: Disk, locked: WriterLock) -> None:
        self.record = record
        self.disk = disk
        self.lock = locked.fd
        self._made = locked.made
        self.segment: RecordSegment | None = None
        """The last segment; None in a new record."""
        self.tail: Tail | None = None
        self.accept: tuple[str, str] | None = None
        """Two people who accept an unexplained tail or unsigned records."""
        self.accepted: tuple[str, str] | None = None
        self.believed: tuple[str, str] | None = None
        """Two people who confirm the clock although the record's last time is later."""
        self.records: list[Record] = []
        """The records of the last segment, its snapshot first."""
        self.cursors: dict[str, DeviceCursor] = {}

    @classmethod
    def at(
        cls,
        record: Path,
        *,
        table: str,
        disk: Disk | None = None,
        accept: tuple[str, str] | None = None,
    ) -> RecordOpening:
        """Lock the record and read its last segment. `accept`: two people who accept an unexplained
        tail.

        Raises NoRecord, InUse, OtherTable, RecordDamaged, RecordsMissing, UnexplainedTail,
        CannotWrite.
        """
        try:
            _look_at(record)
            opening = cls(record, disk or Disk(), acquire_writer_lock(record))
            opening.accept = accept
            try:
                opening._look(table)
            except BaseException:
                opening.close()
                raise
        except OSError as problem:
            raise cannot_read(problem.filename or record, problem) from None
        return opening

    def close(self) -> None:
        """Release the lock and remove what acquiring it created, if no boot has begun."""
        if self.lock >= 0:
            self.undo()
            lock, self.lock = self.lock, -1
            release_lock(lock)

    def undo(self) -> None:
        """Remove what acquiring the lock created. The lock must still be held."""
        remove_created(self._made)
        self._made = ()

    @property
    def snapshot(self) -> Snapshot | None:
        return None if self.segment is None else self.segment.snapshot

    @property
    def last(self) -> Record | None:
        return self.records[-1] if self.records else None

    @property
    def last_not_snapshot(self) -> Record | None:
        """The last record that is not a snapshot; the next record's clocks are compared with it."""
        found = self._besides_snapshots(1)
        return found[-1] if found else None

    def _besides_snapshots(self, count: int) -> list[Record]:
        """The last records that are no snapshots: `count`, if this and the segment before have
        them."""
        found = [record for record in self.records if record.kind != "snapshot"]
        if len(found) < count:
            found = [*(record for record in self.former() if record.kind != "snapshot"), *found]
        return found[-count:]

    def former(self) -> list[Record]:
        """The records of the segment before the last one, empty if it is not here. Raises
        RecordDamaged."""
        if self.segment is None or self.segment.number - 1 not in numbers(self.record):
            return []
        before = read_segment(self.record, self.segment.number - 1)
        return [record_of(before.file, frame) for frame in before.frames]

    @property
    def state(self) -> bytes | None:
        """The procedure's state before `records`, as JSON; "null" before the first decision."""
        return None if self.snapshot is None else bytes(self.snapshot.state)

    def opened(self) -> OpenedData | None:
        """The `opened` data of the last boot."""
        found = None if self.snapshot is None else self.snapshot.opened or None
        for record in self.records:
            if record.kind == "opened":
                found = msgspec.json.decode(record.data, type=OpenedData)
        return found

    def certificate(self) -> str | None:
        """The note of the last boot's certificate."""
        found = None if self.snapshot is None else self.snapshot.certificate or None
        for record in self.records:
            if record.kind == "certificate":
                found = msgspec.json.decode(record.data, type=NoteData).note
        return found

    def closed(self) -> bool:
        """Whether the last boot ended with `closed` and its checkpoint."""
        return "closed" in [record.kind for record in self._besides_snapshots(2)]

    def chains(self, device: str) -> Mapping[int, str]:
        """The chains of the device's recent records by their seq, from the last segment."""
        found = self.cursors.get(device)
        return MappingProxyType(
            {
                at.cursor.seq: at.cursor.chain
                for at in self.records
                if found is not None
                and at.cursor is not None
                and (at.cursor.device, at.cursor.epoch) == (device, found.epoch)
            }
        )

    def _look(self, table: str) -> None:
        if there := _there(self.record):
            self._read(there[-1], table)
        elif origin := stored_origin(self.lock):
            what = f"the record {printable(origin)} was begun here, and its segments are gone"
            raise RecordsMissing(
                self.record, what, f"{ASK}; a new record needs a directory of its own"
            )

    def _read(self, number: int, table: str) -> None:
        file = segment_file(self.record, number)
        try:
            self.disk.drop_cached(file)
        except OSError as problem:
            broken = disk_fails(file, problem)
            if broken is not None:
                raise broken from None
            # otherwise the file cannot be opened, which the reader reports
        segment = self.segment = read_segment(self.record, number)
        self.records = [record_of(segment.file, frame) for frame in segment.frames]
        found = table_of(segment.snapshot.origin)
        if found != table:
            raise OtherTable(
                self.record,
                f"is the record of table {found}, not of {table}",
                "name the record of this table",
            )
        seen = _witnessed(self.record)
        if seen > segment.after.seq:
            raise RecordsMissing(
                self.record, f"ends with record {segment.after.seq}; a witness has seen {seen}", ASK
            )
        self.tail = tail = segment.tail()
        if tail.verdict in WRONG:
            if self.accept is None or tail.verdict is TailVerdict.MISSING:
                raise tail_problem(
                    segment, tail, "two people may accept that: holecard audit accept-tail"
                )
            self.accepted = self.accept
        self.cursors = dict(segment.snapshot.cursors)
        for record in self.records:
            if record.cursor is not None:
                self.cursors[record.cursor.device] = record.cursor


def _there(record: Path) -> list[int]:
    return numbers(record) if (record / DIRECTORY).exists() else []


def _look_at(record: Path) -> None:
    """Raise NoRecord if a directory without segments contains unknown files."""
    if not record.is_dir() or _there(record):
        return
    for place, ours in ((record, _OURS), (record / DIRECTORY, {SPARE})):
        strange = sorted(set(os.listdir(place)) - ours) if place.is_dir() else []
        if strange:
            raise NoRecord(
                place,
                f"holds no record, but {strange[0]}",
                "name a record's directory or an empty one",
            )


def _witnessed(record: Path) -> int:
    """The size of the largest cosigned checkpoint in the directory."""
    sizes = [file.stem for file in (record / COSIGNED).glob("*.note")]
    return max((int(size) for size in sizes if size.isdecimal() and size.isascii()), default=0)


TAILS: Final = "tails"
_MAX_FILE_BYTES: Final = LARGEST * 4 // 3 + (1 << 20)
"""Maximum size in bytes: base64 of less than a segment, and some fields."""


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON file of quarantined bytes."""

    segment: int
    offset: int
    size: int
    sha256: str
    verdict: Literal["torn", "accepted"]
    bytes: str
    two: tuple[str, ...] = ()


def quarantine_tail(opening: RecordOpening) -> None:
    """Copy the tail to `tails/`, then zero it in the segment; both are durable on return."""
    segment, tail, disk = opening.segment, opening.tail, opening.disk
    if segment is None or tail is None or tail.verdict is TailVerdict.CLEAN:
        return
    data = segment.buffer[tail.offset : tail.offset + tail.size]
    kept = _Kept(
        segment.number,
        tail.offset,
        tail.size,
        sha256(data).hexdigest(),
        "torn" if opening.accepted is None else "accepted",
        base64.b64encode(data).decode(),
        opening.accepted or (),
    )
    file = _free_name(opening.record, segment.number, tail.offset)
    file.parent.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    write_atomically(disk, file, encode(kept))
    disk.sync_directory(opening.record)
    fd = disk.open(segment.file)
    try:
        write_all(disk, fd, bytes(tail.size), tail.offset)
        disk.sync(fd)
    finally:
        disk.close(fd)


def unrecorded_tails(opening: RecordOpening) -> list[TailData]:
    """Quarantined tails of the last segment that no record names; also of the segment before, if no
    boot has begun in the last one."""
    place = opening.record / TAILS
    if opening.segment is None or not place.is_dir():
        return []
    number, records = opening.segment.number, opening.records
    where = [number]
    if not any(record.kind == "opened" for record in records):
        where, records = [number - 1, number], [*opening.former(), *records]
    told = {_file_of(record) for record in records if record.kind == "tail"}
    found = []
    for file in [one for each in where for one in sorted(place.glob(f"{each:08d}-*.json"))]:
        name = f"{TAILS}/{file.name}"
        if name not in told:
            kept = _read(file)
            found.append(
                TailData(
                    kept.segment, kept.offset, kept.size, kept.sha256, name, kept.verdict, kept.two
                )
            )
    return found


def quarantined_files(record: Path) -> set[str]:
    """Names of all quarantined files, as `tail` records name them."""
    return {f"{TAILS}/{file.name}" for file in (record / TAILS).glob("*.json")}


def _file_of(record: Record) -> str:
    return msgspec.json.decode(record.data, type=TailData).file


def _read(file: Path) -> _Kept:
    try:
        return msgspec.json.decode(read_file(file, _MAX_FILE_BYTES), type=_Kept)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as problem:
        raise RecordDamaged(file, f"cannot be read: {problem}", ASK) from None


def _free_name(record: Path, number: int, offset: int) -> Path:
    """A free name: the same offset may have been quarantined before."""
    stem = f"{number:08d}-{offset:08d}"
    taken = {file.name for file in (record / TAILS).glob(f"{stem}*.json")}
    names = (stem, *(f"{stem}-{again}" for again in range(2, len(taken) + 2)))
    return record / TAILS / next(f"{name}.json" for name in names if f"{name}.json" not in taken)
