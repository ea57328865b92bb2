"""Comparison of the boots of a record with lists of releases: which software ran at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from controller.audit.errors import RecordProblem
from controller.audit.format.records import OpenedData, RecordPosition
from controller.audit.format.segments import numbers
from controller.audit.read.reader import read_segment, record_of
from controller.audit.release.listing import ReleaseList


class BootSoftware(NamedTuple):
    """The software that a boot recorded."""

    boot: str
    place: RecordPosition
    utc: int
    opened: OpenedData
    before: bool
    """It was opened before the first segment, whose snapshot repeats its data."""


class ComparedBoots(NamedTuple):
    """The boots of a record, compared with releases."""

    boots: int
    other: tuple[tuple[BootSoftware, str], ...]
    """Those of no release, and in what they differ from the most similar one."""
    unread: tuple[str, ...]
    """Segments that could not be read."""


def compare_boots(record: Path, releases: Sequence[ReleaseList], since: int = 0) -> ComparedBoots:
    """Compare the software of each boot, from a segment on, with the releases: it must be that of
    one of them."""
    unread: list[str] = []
    other: list[tuple[BootSoftware, str]] = []
    count = 0
    for number in numbers(record):
        if number < since:
            continue
        try:
            for boot in _boots(record, number, first=not count):
                count += 1
                found = [boot_differences(boot.opened, release) for release in releases]
                if all(found):
                    nearest = min(found, key=len)
                    other.append((boot, ", ".join(nearest)))
        except (RecordProblem, msgspec.DecodeError):
            unread.append(f"the boots of segment {number}: it cannot be read")
    return ComparedBoots(count, tuple(other), tuple(unread))


def boot_differences(opened: OpenedData, release: ReleaseList) -> list[str]:
    """In what the software of a boot differs from a release."""
    return [name for name, ran in _recorded(opened, release) if ran]


def _recorded(opened: OpenedData, release: ReleaseList) -> Iterator[tuple[str, bool]]:
    yield "version", opened.software != f"holecard {release.version}"
    yield "sw", opened.sw != release.sw
    yield "code", opened.code != release.code


def _boots(record: Path, number: int, *, first: bool) -> Iterator[BootSoftware]:
    """The boots that begin in a segment; in the first one also the boot that continues there."""
    segment = read_segment(record, number)
    opened = segment.snapshot.opened
    for frame in segment.frames:
        found = record_of(segment.file, frame)
        place = segment.place(frame)
        if found.kind == "opened":
            data = msgspec.json.decode(found.data, type=OpenedData)
            yield BootSoftware(found.boot, place, found.utc, data, False)
        elif first and opened is not UNSET and found.kind == "snapshot":
            yield BootSoftware(found.boot, place, found.utc, opened, True)
