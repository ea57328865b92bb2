"""Bytes past the last good frame are set aside: first into a file of their own, then zeroed.

A loss of power between the two, or before a `tail` record tells of it, changes nothing: what lies
in `tails/` and no record tells of is told by the next boot.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from controller.audit.errors import RecordDamaged
from controller.audit.files import DIRECTORY_MODE, Disk, read_file, write_all
from controller.audit.format.records import Record, TailData, encode
from controller.audit.format.segments import LARGEST
from controller.audit.format.tail import TailVerdict
from controller.audit.log.opening import RecordOpening
from controller.audit.read.reader import ASK

TAILS: Final = "tails"
_NEW: Final = ".new"
_MOST: Final = LARGEST * 4 // 3 + (1 << 20)
"""Bytes of such a file: base64 of less than a segment, and some more."""


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file of what was set aside."""

    segment: int
    offset: int
    size: int
    sha256: str
    verdict: Literal["torn", "accepted"]
    bytes: str
    two: tuple[str, ...] = ()


def quarantine_tail(opening: RecordOpening) -> None:
    """Into `tails/`, then away from the segment; both are on the disk on return."""
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
    _keep(disk, _free_name(opening.record, segment.number, tail.offset), encode(kept))
    fd = disk.open(segment.file)
    try:
        write_all(disk, fd, bytes(tail.size), tail.offset)
        disk.sync(fd)
    finally:
        disk.close(fd)


def unrecorded_tails(opening: RecordOpening) -> list[TailData]:
    """What was set aside from the last segment and stands in no record yet; from the one before
    it too, where this one began before a boot could tell of it."""
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
    """The files of all that was ever set aside, as `tail` records name them."""
    return {f"{TAILS}/{file.name}" for file in (record / TAILS).glob("*.json")}


def _file_of(record: Record) -> str:
    return msgspec.json.decode(record.data, type=TailData).file


def _read(file: Path) -> _Kept:
    try:
        return msgspec.json.decode(read_file(file, _MOST), type=_Kept)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as problem:
        raise RecordDamaged(file, f"cannot be read: {problem}", ASK) from None


def _free_name(record: Path, number: int, offset: int) -> Path:
    """The same place may have been set aside before."""
    stem = f"{number:08d}-{offset:08d}"
    taken = {file.name for file in (record / TAILS).glob(f"{stem}*.json")}
    names = (stem, *(f"{stem}-{again}" for again in range(2, len(taken) + 2)))
    return record / TAILS / next(f"{name}.json" for name in names if f"{name}.json" not in taken)


def _keep(disk: Disk, file: Path, data: bytes) -> None:
    file.parent.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    new = file.with_name(file.name + _NEW)
    fd = disk.create(new)
    try:
        write_all(disk, fd, data, 0)
        disk.sync(fd)
    finally:
        disk.close(fd)
    disk.rename(new, file)
    disk.sync_directory(file.parent)
    disk.sync_directory(file.parent.parent)
