"""Verification of one round: its segments, its signature, its inclusion proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.notes import VerifierKey
from controller.audit.format.segments import numbers
from controller.audit.index import RoundRow
from controller.audit.proofs import encode_proof, make_proof, verify_proof
from controller.audit.read.lookup import first_head, segment_of
from controller.audit.read.reader import read_segment, record_of
from controller.audit.read.signatures import SignatureReader, SignedCheckpoint
from controller.audit.verify import (
    HoleCardTracker,
    RecordFinding,
    VerifiedSegment,
    VerifyScope,
    verify_segment,
)

_AHEAD: Final = 2
"""Later segments that are searched for a checkpoint of the round."""
_WHERE: Final = "the proof of the round"
_ENDS: Final = frozenset({"checkpoint", "closed"})
"""Kinds at the end of a record, which no checkpoint covers."""


class RoundProof(Struct, frozen=True):
    """The records of a round are in a signed checkpoint."""

    size: int
    root: str
    note: str
    """The signed checkpoint."""
    table_key: str
    hashes: int
    """Hashes of the longest proof."""
    encoded: str


class RoundVerdict(Struct, frozen=True):
    """The result of a verification."""

    said: Literal["right", "wrong", "partly"]
    records: tuple[int, int]
    findings: tuple[str, ...]
    elsewhere: int
    """Findings in these segments that do not concern the round."""
    again: int
    """Decisions and refusals that were computed again with the same result."""
    taken: int
    """Those of another code version, which were not."""
    opened: int
    """Hole cards that match their commitment."""
    unsigned: int
    """Records of the round without a checkpoint yet."""
    given: bool
    """Whether the table's key is from another source than the record."""
    proof: RoundProof | None


def check_round(
    record: Path, round_: RoundRow, table_key: VerifierKey | None = None
) -> RoundVerdict:
    """Verify a round. Raises RecordProblem if the record cannot be read."""
    span = round_.first_seq, round_.last_seq
    there = numbers(record)
    first, last = segment_of(record, span[0]), segment_of(record, span[1])
    holes = HoleCardTracker(whole=False)
    wrong: list[RecordFinding] = []
    elsewhere = again = taken = 0
    for number in range(first, last + 1):
        part: VerifiedSegment = verify_segment(record, number, number == there[-1], VerifyScope())
        found = [*part.findings, *_hidden(part, holes, round_.round)]
        mine = [one for one in found if span[0] <= one.seq <= span[1]]
        wrong += mine
        elsewhere += len(found) - len(mine) + part.more
        again += part.totals.again
        taken += sum(part.other_code.values())
    findings = [str(one) for one in wrong]
    unsigned = span[1] - span[0] + 1
    proof = None
    try:
        signed, unsigned = _signed_over(record, last, there, span, table_key)
        proof = None if signed is None else _proved(record, span, signed, table_key)
    except RecordProblem as problem:  # an invalid signature or proof
        findings.append(f"{problem.where}: {problem.what}")
    partly = taken or unsigned or elsewhere
    return RoundVerdict(
        "wrong" if findings else "partly" if partly else "right",
        span,
        tuple(findings),
        elsewhere,
        again,
        taken,
        holes.opened,
        unsigned,
        table_key is not None,
        proof,
    )


def _hidden(part: VerifiedSegment, holes: HoleCardTracker, round_: int) -> list[RecordFinding]:
    """Findings about the hole cards of the round."""
    mine = [hidden for hidden in part.hidden if hidden.at.round == round_]
    return [found for hidden in mine for found in holes.take(hidden)]


def _signed_over(
    record: Path, number: int, there: list[int], span: tuple[int, int], key: VerifierKey | None
) -> tuple[SignedCheckpoint | None, int]:
    """Returns the first checkpoint over the whole round, which ends in segment `number`, or else
    the last one over part of it; and the number of its records without a checkpoint, except those
    that sign and close the record."""
    origin = first_head(record).snapshot.origin
    found: SignedCheckpoint | None = None
    kinds: dict[int, str] = {}
    for one in [each for each in there if each >= number][: 1 + _AHEAD]:
        segment = read_segment(record, one)
        signatures = SignatureReader(origin, key)
        signatures.begin(segment)
        for frame in segment.frames:
            read = record_of(segment.file, frame)
            kinds[frame.seq] = read.kind
            signed = signatures.take(segment.place(frame), read)
            if signed is not None and signed.checkpoint.size >= span[0]:
                found = signed
                if signed.checkpoint.size >= span[1]:
                    return found, 0
    size = span[0] - 1 if found is None else found.checkpoint.size
    rest = [seq for seq in range(size + 1, span[1] + 1) if kinds.get(seq) not in _ENDS]
    return found, len(rest)


def _proved(
    record: Path, span: tuple[int, int], signed: SignedCheckpoint, given: VerifierKey | None
) -> RoundProof:
    """Create the proof, then check it from its encoded bytes alone."""
    proof = make_proof(record, range(span[0], min(span[1], signed.checkpoint.size) + 1), signed)
    key = given or _named(record, signed)
    checked = verify_proof(_WHERE, proof, key).checkpoint
    return RoundProof(
        checked.size,
        checked.root.hex(),
        signed.note,
        str(key),
        max(len(one.hashes) for one in proof.records),
        encode_proof(proof).decode(),
    )


def _named(record: Path, signed: SignedCheckpoint) -> VerifierKey:
    """Returns the table's key according to the record before the checkpoint."""
    segment = read_segment(record, segment_of(record, signed.seq))
    signatures = SignatureReader(segment.snapshot.origin)
    signatures.begin(segment)
    for frame in segment.frames:
        if signatures.table is not None:
            break
        signatures.take(segment.place(frame), record_of(segment.file, frame))
    assert signatures.table is not None
    return signatures.table
