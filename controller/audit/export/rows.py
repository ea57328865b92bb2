"""Records as lines: JSON Lines, byte for byte as in the record, or CSV for spreadsheets.

Spreadsheets execute cells that begin with =, +, - or @ as formulas; such text is escaped.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

from controller.audit.files import MODE, Disk
from controller.audit.format.records import Record
from controller.audit.format.segments import RecordFrame, numbers, segment_file
from controller.audit.proofs import no_progress
from controller.audit.read.lookup import Selection, no_match
from controller.audit.read.reader import closed, load, read_segment, record_of

RowFormat: TypeAlias = Literal["jsonl", "csv"]

COLUMNS: Final = (
    "seq",
    "day",
    "time",
    "clock",
    "boot",
    "round",
    "kind",
    "role",
    "name",
    "seat",
    "cause",
    "device",
    "device_epoch",
    "device_seq",
    "utc_us",
    "mono_ns",
    "data",
)
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Includes the full-width forms, which some programs accept as well."""
_CONTROL: Final = ("\t", "\r", "\n")
_TEXT: Final = "'"
"""Put before text that would be a formula."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_UTC: Final = 253_402_300_800_000_000
"""Microseconds at the end of the year 9999."""


def record_rows(
    record: Path, pick: Selection, form: RowFormat, on_segment: Callable[[int], None] = no_progress
) -> Iterator[bytes]:
    """Yield one line per record; CSV starts with the column names.

    Raises NoMatch if there are no records, RecordDamaged and NoRecord.
    """
    line = {"jsonl": _json_line, "csv": _csv_line}[form]
    found = False
    there = numbers(record)
    for number in there:
        on_segment(number)
        if not pick.may_be_in(load(segment_file(record, number), number)):
            continue
        segment = read_segment(record, number)
        for frame in segment.frames:
            one = record_of(segment.file, frame)
            if pick.takes(one):
                if form == "csv" and not found:
                    yield _csv_row(COLUMNS)
                found = True
                yield line(frame, one)
        if number != there[-1]:
            closed(segment)
    if not found:
        raise no_match(record, pick, "name what the record has")


def _json_line(frame: RecordFrame, record: Record) -> bytes:
    return frame.data + b"\n"


def _csv_line(frame: RecordFrame, record: Record) -> bytes:
    by, cursor = record.by, record.cursor
    return _csv_row(
        (
            record.seq,
            record.day,
            time_text(record.utc),
            record.clock,
            record.boot,
            record.round,
            record.kind,
            by.role,
            by.name,
            by.seat or "",
            record.cause or "",
            "" if cursor is None else cursor.device,
            "" if cursor is None else cursor.epoch,
            "" if cursor is None else cursor.seq,
            record.utc,
            record.mono,
            bytes(record.data).decode(errors="backslashreplace"),
        )
    )


def _csv_row(values: tuple[object, ...]) -> bytes:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC).writerow([csv_cell(value) for value in values])
    return line.getvalue().encode()


def csv_cell(value: object) -> object:
    if isinstance(value, int):
        return value
    text = str(value)
    formula = text.lstrip().lstrip("\ufeff").startswith(_FORMULA) or text.startswith(_CONTROL)
    return _TEXT + text if formula else text


def time_text(utc: int) -> str:
    """A time in UTC, as people and spreadsheets read it; empty if out of range."""
    if not 0 <= utc < _LAST_UTC:
        return ""
    return f"{_EPOCH + timedelta(microseconds=utc):%Y-%m-%d %H:%M:%S.%f}"


def write_rows(out: Path, lines: Iterable[bytes]) -> int:
    """Write the lines atomically and durably, and return their number. Raises OSError."""
    fd, name = tempfile.mkstemp(prefix=f".{out.name[:100]}.", dir=out.parent)
    new, count = Path(name), 0
    try:
        with os.fdopen(fd, "wb") as opened:
            os.fchmod(fd, MODE)
            for line in lines:
                opened.write(line)
                count += 1
            opened.flush()
            os.fsync(fd)
        new.rename(out)
        Disk().sync_directory(out.parent)
    finally:
        new.unlink(missing_ok=True)
    return count
