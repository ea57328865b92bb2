"""Selects records: by rounds, by gaming day, or all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.records import Record
from controller.audit.format.segments import numbers, segment_file
from controller.audit.read.heads import PUT_BACK, gone_before
from controller.audit.read.reader import closed, load, read_segment, record_of
from controller.audit.read.retirements import where_retired

_ROUND: Final = re.compile(rb'"round":([0-9]{1,19}),')


class NoMatch(RecordProblem):
    """The record contains none of the selected records."""


class Selection(Struct, frozen=True):
    """A range of rounds, a gaming day, segments up to one, or, with defaults, everything."""

    first: int = 0
    last: int = 0
    day: str = ""
    until: int = 0

    @property
    def everything(self) -> bool:
        return not self.first and not self.day

    def takes(self, record: Record) -> bool:
        if self.first:
            return self.first <= record.round <= self.last
        return not self.day or record.day == self.day

    def may_be_in(self, buffer: bytes) -> bool:
        """Fast pre-check whether a segment may contain selected records."""
        if self.first:
            return any(
                self.first <= int(found[1]) <= self.last for found in _ROUND.finditer(buffer)
            )
        return not self.day or f'"day":"{self.day}"'.encode() in buffer

    def __str__(self) -> str:
        if self.first:
            rounds = f"round {self.first}"
            return rounds if self.first == self.last else f"rounds {self.first} to {self.last}"
        if self.until:
            return f"segments up to {self.until}"
        return f"gaming day {self.day}" if self.day else "all"


def no_match(record: Path, pick: Selection, allowed: str) -> NoMatch:
    """The error that no record matches, with the reason: retired or missing segments. Raises
    NoRecord."""
    retired = where_retired(record, rounds=(pick.first, pick.last), day=pick.day)
    if retired:
        return NoMatch(record, retired, "look into that case")
    before = gone_before(record)
    if not before:
        return NoMatch(record, f"has nothing of {pick}", allowed)
    return NoMatch(record, f"{before}, and nothing of {pick} in the others", PUT_BACK)


class Match(NamedTuple):
    segment: int
    seq: int
    round: int
    signs: bool
    """It is a checkpoint, which only a later one covers."""


def matches(
    record: Path, pick: Selection, tell: Callable[[int], None] = lambda number: None
) -> Iterator[Match]:
    """The positions of all selected records; `tell` is a progress callback with the segment number.
    Raises RecordDamaged, NoRecord."""
    there = numbers(record)
    for number in there:
        tell(number)
        if not pick.may_be_in(load(segment_file(record, number), number)):
            continue
        segment = read_segment(record, number)
        if number != there[-1]:
            closed(segment)
        for frame in segment.frames:
            found = record_of(segment.file, frame)
            if pick.takes(found):
                yield Match(number, found.seq, found.round, found.kind == "checkpoint")
