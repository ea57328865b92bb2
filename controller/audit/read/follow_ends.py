"""How a record ends for whoever reads it: whether what stands behind its last good record is told.

All that reads a record reads up to its last good one. Where it goes on behind that, and no write
that was cut off explains how, what was read is not all that was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.errors import IndexAhead, RecordProblem, Unexplained
from controller.audit.format.segments import numbers
from controller.audit.format.tail import Tail, Verdict
from controller.audit.proofs.prover import CannotProve
from controller.audit.read.reader import ASK, Segment, in_words, missing, read_segment
from controller.audit.read.selection import NothingThere
from controller.audit.replay.hole_opening import NotVoided
from controller.audit.witness.witness import Unsigned

WRONG: Final = frozenset({Verdict.MISSING, Verdict.UNEXPLAINED})
"""A write that was cut off is no wrong end: whoever writes the record next sets it aside."""


def check_end(record: Path) -> None:
    """Missing, Unexplained where what stands behind the last good record is wrong.

    A record that is written meanwhile may look so while it is read: what is gone or has moved at a
    second look is no wrong end. Damaged, CannotWrite where the last segment cannot be read."""
    first = _wrong(record)
    if first is None:
        return
    found = _wrong(record)
    if found is not None and found.place == first.place:
        raise found.problem()


@contextmanager
def to_its_end(record: Path) -> Iterator[None]:
    """What is done in it is done with a record that ends as it must, or it is said how it ends:
    also where that is why something is not there. Raises as check_end() does."""
    try:
        yield
    except (NothingThere, CannotProve, IndexAhead, NotVoided, Unsigned):
        check_end(record)
        raise
    check_end(record)


class _Wrong(NamedTuple):
    segment: Segment
    tail: Tail

    @property
    def place(self) -> tuple[int, int]:
        return self.segment.number, self.tail.offset

    def problem(self) -> RecordProblem:
        if self.tail.verdict is Verdict.MISSING:
            return missing(self.segment, self.tail)
        what = f"offset {self.tail.offset}: {in_words(self.tail, self.segment)}"
        return Unexplained(self.segment.file, what, ASK)


def _wrong(record: Path) -> _Wrong | None:
    there = numbers(record)
    if not there:
        return None
    segment = read_segment(record, there[-1])
    tail = segment.tail()
    return _Wrong(segment, tail) if tail.verdict in WRONG else None
