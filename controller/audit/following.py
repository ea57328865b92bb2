"""A record read along as it grows, from segment to segment, beside whoever writes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.ends import WRONG, check_end
from controller.audit.finding_records import Told
from controller.audit.frames import HEAD_SIZE, MOST_BYTES
from controller.audit.problems import CannotWrite
from controller.audit.reading import (
    Where,
    good_frames,
    load,
    read_segment,
    record_of,
    segments,
)
from controller.audit.records import Opened, Place
from controller.audit.segments import HEADER_SIZE, numbers, segment_file
from controller.audit.tails import classify

CHUNK: Final = 1024 * 1024
"""Bytes that are read at once; more than any frame has."""
assert CHUNK > HEAD_SIZE + MOST_BYTES


class Following:
    """From the end of a record on. `more` gives what was written since it was last asked."""

    def __init__(self, record: Path) -> None:
        """NoRecord, Damaged, CannotWrite."""
        self._record = record
        self._number = numbers(record)[-1]
        segment = read_segment(record, self._number)
        self._where, self._at = segment.after, segment.end
        self._opened = segment.snapshot.opened or None
        self._good = self._number
        """The segment of the last record."""
        self._looked = (0, 0, 0)
        """Where it stood, and how old the file was, when its end was last looked at."""
        for frame in segment.frames:
            self._opened = self._boot(segment.file, frame.data) or self._opened

    @property
    def where(self) -> Where:
        """How far it has come."""
        return self._where

    def more(self) -> Iterator[Told]:
        """Damaged, CannotWrite."""
        while True:
            yield from self._of_segment()
            following = segment_file(self._record, self._number + 1)
            if not following.exists():
                return
            yield from self._of_segment()  # what came before the next one was begun
            self._number, self._at = self._number + 1, HEADER_SIZE

    def check_end(self) -> None:
        """Where nothing more comes: whether that is because the record is damaged there. Looks only
        when it has come further, or the file has changed. Missing, Unexplained, Damaged,
        CannotWrite."""
        file = segment_file(self._record, self._number)
        here = (self._number, self._at, _changed(file))
        if here == self._looked:
            return
        self._looked = here
        tail = classify(load(file, self._number), self._at, self._where.seq)
        if tail.verdict in WRONG:
            for _ in segments(self._record, self._good):
                continue  # each of them but the last must be whole
            check_end(self._record)

    def _of_segment(self) -> Iterator[Told]:
        file = segment_file(self._record, self._number)
        while True:
            chunk = _read(file, self._at)
            base, begin = self._at, self._where
            for frame in good_frames(chunk, 0, begin):
                self._where = Where(frame.seq, frame.chain)
                self._at, self._good = base + frame.end, self._number
                self._opened = self._boot(file, frame.data) or self._opened
                place = Place(self._number, base + frame.offset, frame.seq)
                yield Told(place, frame.data, record_of(file, frame), self._opened)
            if self._where == begin:
                return

    def _boot(self, file: Path, data: bytes) -> Opened | None:
        if b'"kind":"opened"' not in data:
            return None
        try:
            found = msgspec.json.decode(data, type=_Boot)
        except msgspec.DecodeError:
            return None
        return found.data if found.kind == "opened" else None


class _Boot(msgspec.Struct, frozen=True):
    kind: str
    data: Opened


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError as problem:
        raise CannotWrite(file, f"cannot be read: {problem.strerror}", "mend that") from None


def _read(file: Path, at: int) -> bytes:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(fd, CHUNK, at)
        finally:
            os.close(fd)
    except OSError as problem:
        raise CannotWrite(file, f"cannot be read: {problem.strerror}", "mend that") from None
