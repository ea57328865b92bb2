"""Quarantine of trailing bytes: they are copied to a file in `tails/`, then zeroed in the segment.

Both steps are idempotent: after a power loss in between, the next boot finds the copy that no
`tail` record names, and records it.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from controller.audit.errors import RecordDamaged
from controller.audit.files import DIRECTORY_MODE, read_file, write_all, write_atomically
from controller.audit.format.records import Record, TailData, encode
from controller.audit.format.segments import LARGEST
from controller.audit.format.tail import TailVerdict
from controller.audit.log.opening import RecordOpening
from controller.audit.read.reader import ASK

TAILS: Final = "tails"
_MOST: Final = LARGEST * 4 // 3 + (1 << 20)
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
        return msgspec.json.decode(read_file(file, _MOST), type=_Kept)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as problem:
        raise RecordDamaged(file, f"cannot be read: {problem}", ASK) from None


def _free_name(record: Path, number: int, offset: int) -> Path:
    """A free name: the same offset may have been quarantined before."""
    stem = f"{number:08d}-{offset:08d}"
    taken = {file.name for file in (record / TAILS).glob(f"{stem}*.json")}
    names = (stem, *(f"{stem}-{again}" for again in range(2, len(taken) + 2)))
    return record / TAILS / next(f"{name}.json" for name in names if f"{name}.json" not in taken)
