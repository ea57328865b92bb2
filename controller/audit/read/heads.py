"""First records of segments, read without the rest, to search for a segment."""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.errors import NoRecord, RecordDamaged, cannot_read
from controller.audit.format.frames import HEAD_SIZE, MOST_BYTES, unpack
from controller.audit.format.records import Record, Snapshot
from controller.audit.format.segments import (
    HEADER_SIZE,
    numbers,
    open_segment,
    read_header,
    segment_file,
)
from controller.audit.read.reader import ASK, record_of, snapshot_of
from controller.audit.read.retirements import retirement_files, where_retired

PUT_BACK: Final = "put them back from the archive"
_MOST: Final = HEADER_SIZE + HEAD_SIZE + MOST_BYTES


class FirstRecord(NamedTuple):
    """A segment's first record, which describes all records before it."""

    number: int
    record: Record
    snapshot: Snapshot


def existing_segments(record: Path) -> list[int]:
    """The numbers of the segments, at least one. Raises NoRecord, RecordDamaged."""
    there = numbers(record)
    if not there:
        raise NoRecord(record, "the record has not begun", "wait for its first segment")
    return there


def head(record: Path, number: int) -> FirstRecord:
    """The first record of a segment. Raises RecordDamaged, CannotWrite."""
    file = segment_file(record, number)
    try:
        with open_segment(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            data = opened.read(_MOST)
    except OSError as problem:
        raise cannot_read(file, problem) from None
    read_header(file, data, number, size)
    first = unpack(data, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", ASK)
    found = record_of(file, first)
    return FirstRecord(number, found, snapshot_of(file, number, found))


def first_head(record: Path) -> FirstRecord:
    """The first record of the first existing segment. Raises NoRecord, RecordDamaged."""
    return head(record, existing_segments(record)[0])


def gone_before(record: Path) -> str:
    """Which segments are missing before the first one, as text; empty if none are, or if they were
    retired. Raises NoRecord."""
    first = existing_segments(record)[0]
    if first == 1 or any(first <= one.number + 1 for one in retirement_files(record)):
        return ""
    return f"segments before {first} are not here"


def segment_of(record: Path, seq: int) -> int:
    """The segment that contains this record, or the last one. Raises NoRecord, and RecordDamaged if
    the record is before the first existing segment."""
    there = existing_segments(record)
    first = head(record, there[0])
    if seq < first.record.seq:
        what = f"record {seq} stands before segment {there[0]}, the first that is here"
        retired = where_retired(record, seqs=(seq, seq))
        raise RecordDamaged(record, retired or what, "look into that case" if retired else ASK)
    after = bisect_right(there, seq, key=lambda number: head(record, number).record.seq)
    return there[after - 1]
