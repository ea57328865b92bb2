"""Comparison of the boots of a record with lists of releases: which software ran at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from controller.audit.errors import RecordProblem
from controller.audit.format.records import OpenedData, RecordPosition
from controller.audit.format.segments import numbers
from controller.audit.format.validation import UNREADABLE
from controller.audit.read.reader import read_segment, record_of
from controller.audit.release.listing import ReleaseList


class RecordedSoftware(Struct, frozen=True):
    """What a boot recorded of its software."""

    software: str
    sw: str
    code: str
    release: str | UnsetType = UNSET
    """The file hashes, and whether source ran; absent in records of version 1."""
    dependencies: str | UnsetType = UNSET
    runs: str | UnsetType = UNSET


class BootSoftware(NamedTuple):
    """The software of a boot. One that was opened before the first segment is in its snapshot."""

    boot: str
    place: RecordPosition
    utc: int
    ran: RecordedSoftware


class ComparedBoots(NamedTuple):
    """The boots of a record, compared with releases."""

    boots: int
    bare: int
    """Those that recorded no hashes of files: only their source is compared."""
    other: tuple[tuple[BootSoftware, str], ...]
    """Those of no release, and in what they differ from the most similar one."""
    unread: tuple[str, ...]
    """Segments that could not be read."""


def compare_boots(record: Path, releases: Sequence[ReleaseList], since: int = 0) -> ComparedBoots:
    """Compare the software of each boot, from a segment on, with the releases: it must be that of
    one of them."""
    unread: list[str] = []
    other: list[tuple[BootSoftware, str]] = []
    count = bare = 0
    for number in numbers(record):
        if number < since:
            continue
        try:
            for boot in _boots(record, number, first=not count):
                count += 1
                bare += boot.ran.release is UNSET
                found = [boot_differences(boot.ran, release) for release in releases]
                if all(found):
                    nearest = min(found, key=len)
                    other.append((boot, ", ".join(nearest)))
        except (RecordProblem, *UNREADABLE):
            unread.append(f"the boots of segment {number}: it cannot be read")
    return ComparedBoots(count, bare, tuple(other), tuple(unread))


def boot_differences(ran: RecordedSoftware, release: ReleaseList) -> list[str]:
    """In what the software of a boot differs from a release."""
    expected = {
        "software": f"holecard {release.version}",
        "sw": release.sw,
        "code": release.code,
        "release": release.hashes.software,
        "dependencies": release.hashes.dependencies,
        "runs": "source",
    }
    return [name for name, value in expected.items() if getattr(ran, name) not in (value, UNSET)]


def _boots(record: Path, number: int, *, first: bool) -> Iterator[BootSoftware]:
    """The boots that begin in a segment; in the first one also the boot that continues there."""
    segment = read_segment(record, number)
    for frame in segment.frames:
        found = record_of(segment.file, frame)
        opened: OpenedData | UnsetType = UNSET
        if found.kind == "opened":
            opened = msgspec.json.decode(found.data, type=OpenedData)
        elif first and found.kind == "snapshot":
            opened = segment.snapshot.opened
        if opened is not UNSET:
            ran = msgspec.convert(opened, RecordedSoftware, from_attributes=True)
            yield BootSoftware(found.boot, segment.place(frame), found.utc, ran)
