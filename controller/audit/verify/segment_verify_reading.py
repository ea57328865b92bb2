"""A segment read for verifying: its snapshot and its good frames, or why it cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.errors import Damaged
from controller.audit.format.frames import Frame, unpack
from controller.audit.format.merkle import Hash
from controller.audit.format.records import Snapshot
from controller.audit.format.segments import HEADER_SIZE, segment_file
from controller.audit.read.reader import Segment, Where, load, record_of, snapshot_of
from controller.audit.read.scan import PartOfTree, Scanned, roots, scan
from controller.audit.verify.finding import Finding

MOST_READINGS: Final = 8
"""Of a segment that changes each time."""


class Whole(NamedTuple):
    """A segment up to its last good frame."""

    segment: Segment
    """With that frame only."""
    scanned: Scanned


def whole(record: Path, number: int, *, grows: bool = False) -> Whole | Finding:
    """`grows`: somebody may be writing it. What then looks amiss behind its last record is read
    again for as long as more of it is there. CannotWrite where its file cannot be read."""
    found = _whole(record, number)
    for _ in range(MOST_READINGS if grows else 0):
        before = _end(found)
        if before is None:
            break
        found = _whole(record, number)
        if _end(found) == before:
            break
    return found


def _end(found: Whole | Finding) -> int | None:
    """How far it was read, where something stands there that is not the next record."""
    if isinstance(found, Finding):
        return 0
    return found.scanned.end if found.scanned.why else None


def _whole(record: Path, number: int) -> Whole | Finding:
    file = segment_file(record, number)
    at = 0
    try:
        buffer = load(file, number)
        at = HEADER_SIZE
        snapshot, seq = _snapshot(file, number, buffer)
    except Damaged as problem:
        return Finding(number, at, 0, 0, problem.what.removeprefix(f"offset {at}: "), 0)
    before = Where(seq - 1, bytes.fromhex(snapshot.chain))
    scanned = scan(buffer, HEADER_SIZE, before)
    if not scanned.records:
        what = f"its first record is not good: {scanned.why}"
        return Finding(number, HEADER_SIZE, seq, 0, what, 0)
    durable, offset = scanned.durable[1], scanned.offsets[-1]
    end = Frame(scanned.where.seq, durable, scanned.where.chain, scanned.records[-1], offset)
    return Whole(Segment(file, number, buffer, before, snapshot, [end]), scanned)


def tree_of(found: Whole) -> PartOfTree:
    frontier = [bytes.fromhex(one) for one in found.segment.snapshot.frontier]
    return PartOfTree(found.segment.before.seq, frontier, found.scanned.leaves)


def roots_of(record: Path, number: int, sizes: Sequence[int]) -> dict[int, Hash]:
    """Roots that are asked for of a segment alone; none where it cannot be read. CannotWrite."""
    found = whole(record, number)
    return {} if isinstance(found, Finding) else roots(tree_of(found), sizes)


def _snapshot(file: Path, number: int, buffer: bytes) -> tuple[Snapshot, int]:
    """The snapshot that a segment begins with, and its seq. Damaged."""
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise Damaged(file, f"offset {HEADER_SIZE}: its first record is not whole", "")
    try:
        return snapshot_of(file, number, record_of(file, first)), first.seq
    except RecursionError as problem:
        raise Damaged(file, f"its snapshot cannot be read: {problem}", "") from None
