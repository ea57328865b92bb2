"""Whether the last segment of a record is signed as a controller leaves it.

Whoever has no key can write frames with right hashes. So before a boot goes on with a record, and
signs all of it, what its last segment says must be what former boots have signed: each signs at
once when it begins, and within a second after anything.
"""

from __future__ import annotations

from typing import Final

from controller.audit.errors import RecordProblem
from controller.audit.format.merkle import Frontier, leaf_hash
from controller.audit.format.notes import VerifierKey
from controller.audit.format.records import Record
from controller.audit.log.opening import Opening
from controller.audit.read.reader import Segment
from controller.audit.read.signatures import BadSignature, Signatures

MOST_NS: Final = 10_000_000_000
"""A controller that runs has signed by then, whatever its disk does."""
_BEFORE_THE_FIRST: Final = frozenset(
    {"snapshot", "opened", "tail", "fault", "clock", "certificate"}
)
_TODO: Final = "two people may accept that: holecard audit accept-tail"


class Unsigned(RecordProblem):
    """Records that no boot has signed although it must have."""


def in_doubt(opening: Opening, table: VerifierKey) -> list[dict[str, object]]:
    """What two people have accepted although nobody signed it; BadSignature, Unsigned where they
    have not."""
    if opening.segment is None:
        return []
    try:
        check_signed(opening.segment, opening.records, table)
    except (BadSignature, Unsigned) as problem:
        if opening.accept is None:
            raise
        detail = {"problem": problem.what, "two": list(opening.accept)}
        return [{"what": "unsigned", "detail": detail}]
    return []


def check_signed(segment: Segment, records: list[Record], table: VerifierKey) -> None:
    """BadSignature, Unsigned."""
    signatures = Signatures(segment.snapshot.origin, table)
    signatures.begin(segment)
    hashes = [bytes.fromhex(one) for one in segment.snapshot.frontier]
    tree = Frontier.of(segment.before.seq, hashes)
    roots: dict[int, bytes] = {tree.size: tree.root()} if tree.size else {}
    first: Record | None = None
    """Of those that no checkpoint is over yet."""
    began = ""
    for frame, record in zip(segment.frames, records, strict=True):
        place = segment.place(frame)
        found = signatures.take(place, record)
        if record.kind == "opened":
            began = record.boot
        if found is not None:
            size = found.checkpoint.size
            if size in roots and roots[size] != found.checkpoint.root:
                raise Unsigned(
                    segment.file, f"{place}: its checkpoint is over other records", _TODO
                )
            began, first = "", None
        elif began and record.kind not in _BEFORE_THE_FIRST:
            what = f"{place}: boot {began} recorded this before it had signed anything"
            raise Unsigned(segment.file, what, _TODO)
        elif first is not None and _late(first, record):
            what = f"{place}: boot {record.boot} had signed nothing for over {MOST_NS // 10**9} s"
            raise Unsigned(segment.file, what, _TODO)
        elif first is None and record.kind not in _BEFORE_THE_FIRST:
            first = record
        tree.add(leaf_hash(frame.data))
        roots[tree.size] = tree.root()


def _late(first: Record, record: Record) -> bool:
    return record.boot == first.boot and record.mono - first.mono > MOST_NS
