"""Reads single records at the locations that the index has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.errors import CannotWrite, RecordDamaged
from controller.audit.format.records import OpenedData, Record
from controller.audit.format.segments import HEAD_SIZE, segment_file, unpack
from controller.audit.read.reader import ASK, record_of
from controller.screens.review.view.queries import RecordLocation

APART: Final = 256 * 1024
"""Bytes between two records that are faster read than skipped."""


def read_back(record: Path, wanted: Sequence[RecordLocation]) -> list[Record]:
    """Returns the records in order. Raises RecordDamaged if a location is wrong, and
    CannotWrite."""
    found: list[Record] = []
    for number, group in groupby(wanted, key=lambda one: one.place.segment):
        file = segment_file(record, number)
        for stretch in _stretches(list(group)):
            found += _read(file, stretch)
    return found


def opened_of(record: Path, lying: RecordLocation) -> OpenedData:
    """Returns an `opened` record. Raises RecordDamaged."""
    (found,) = read_back(record, [lying])
    try:
        return msgspec.json.decode(found.data, type=OpenedData)
    except msgspec.DecodeError as problem:
        raise RecordDamaged(record, f"{lying.place}: cannot be read: {problem}", ASK) from None


def _stretches(lying: list[RecordLocation]) -> list[list[RecordLocation]]:
    """Group records that are close to each other, to be read at once."""
    found = [[lying[0]]]
    for one in lying[1:]:
        last = found[-1][-1]
        near = one.place.offset - last.place.offset - last.length < APART
        if near:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _read(file: Path, lying: list[RecordLocation]) -> list[Record]:
    start = lying[0].place.offset
    end = lying[-1].place.offset + HEAD_SIZE + lying[-1].length
    try:
        with file.open("rb", buffering=0) as opened:
            opened.seek(start)
            data = opened.read(end - start)
    except OSError as problem:
        raise CannotWrite(file, f"cannot be read: {problem.strerror}", "mend that") from None
    found = []
    for one in lying:
        frame = unpack(data, one.place.offset - start)
        if frame is None or frame.seq != one.place.seq:
            raise RecordDamaged(
                file, f"offset {one.place.offset}: record {one.place.seq} is not there", ASK
            )
        found.append(record_of(file, frame))
    return found
