"""Stand-alone proofs: records with everything that proves that a table signed them.

Verification needs the table's key, but neither the record nor the controller. A proof is made by
reading the record once, from the first needed segment, in constant memory. The tree before that
segment is taken from its snapshot. It need not be trusted, because all hashes must lead to the root
that the table signed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from controller.audit.errors import CannotProve, RecordDamaged, RecordProblem
from controller.audit.format.merkle import (
    HASH_SIZE,
    Block,
    Hash,
    Range,
    Span,
    blocks,
    check_consistency,
    check_inclusion,
    consistency_ranges,
    inclusion_ranges,
    leaf_hash,
)
from controller.audit.format.notes import (
    Checkpoint,
    NoteProblem,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import Record, read_record
from controller.audit.format.segments import RecordFrame, numbers
from controller.audit.read.lookup import (
    PUT_BACK,
    Selection,
    first_head,
    gone_before,
    matches,
    segment_of,
)
from controller.audit.read.reader import (
    ASK,
    PartOfTree,
    RecordSegment,
    read_segment,
    record_of,
    segments,
)
from controller.audit.read.retirements import where_retired
from controller.audit.read.signatures import (
    SignatureReader,
    SignedCheckpoint,
    check_table_key,
    signed_checkpoint,
)

FORMAT: Final = "holecard proof 1"
MAX_BYTES: Final = 1 << 28
"""Maximum size of a proof file."""

Hex: TypeAlias = str


class ProofProblem(RecordProblem):
    """The proof is invalid."""


class ProvedRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A record with its inclusion proof."""

    seq: int
    record: str
    """Its encoded bytes."""
    hashes: tuple[Hex, ...]


class OlderTree(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An older tree with its consistency proof."""

    size: int
    root: Hex
    hashes: tuple[Hex, ...]
    checkpoint: str = ""
    """The signed checkpoint of that tree, if given."""
    certificate: str = ""


class Proof(Struct, frozen=True, forbid_unknown_fields=True):
    """All proofs refer to the tree of one checkpoint."""

    format: Literal["holecard proof 1"]
    origin: str
    checkpoint: str
    certificate: str
    records: tuple[ProvedRecord, ...]
    grown: tuple[OlderTree, ...]


class CheckedProof(Struct, frozen=True):
    """What a verified proof file proves."""

    checkpoint: Checkpoint
    records: tuple[Record, ...]
    grown: tuple[tuple[int, Hash, bool], ...]
    """Size, root, and whether it is signed."""
    witnessed: int | None
    """Seconds since 1970 of the witness's cosignature of the largest tree; None if no witness
    key was given."""
    witnessed_size: int = 0


def encode_proof(proof: Proof) -> bytes:
    """Encode a proof file."""
    return msgspec.json.encode(proof) + b"\n"


def decode_proof(where: str, data: bytes) -> Proof:
    """Decode a proof file. Raises ProofProblem."""
    try:
        return msgspec.json.decode(data, type=Proof)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _no(where, f"is no proof: {problem}") from None


def verify_proof(
    where: str, proof: Proof, table: VerifierKey, witness: VerifierKey | None = None
) -> CheckedProof:
    """Verify a proof with the table's key and optionally a witness's key. Raises ProofProblem."""
    try:
        check_table_key(table, proof.origin)
        said = _signed(proof.checkpoint, proof.certificate, table)
        for older in proof.grown:
            _check_signed(older, table)
    except NoteProblem as problem:
        raise _no(where, str(problem)) from None
    records = tuple(_proved(where, said, one) for one in proof.records)
    for older in proof.grown:
        hashes = _hashes(where, (older.root, *older.hashes))
        if not check_consistency(older.size, said.size, hashes[1:], hashes[0], said.root):
            raise _no(
                where, f"the tree of {said.size} records is not the one of {older.size}, grown"
            )
    grown = tuple(
        (older.size, bytes.fromhex(older.root), bool(older.checkpoint)) for older in proof.grown
    )
    if not records and not grown:
        raise _no(where, "holds no record and no older tree")
    if witness is None:
        return CheckedProof(said, records, grown, None)
    size, seconds = _witnessed(where, proof, witness)
    return CheckedProof(said, records, grown, seconds, size)


def _signed(text: str, certificate: str, table: VerifierKey) -> Checkpoint:
    """The checkpoint, if signed by a certified key of this record. Raises NoteProblem."""
    return signed_checkpoint(parse_note(text), read_certificate(certificate, table))


def _check_signed(older: OlderTree, table: VerifierKey) -> None:
    if not older.checkpoint:
        return
    said = _signed(older.checkpoint, older.certificate, table)
    if (said.size, said.root.hex()) != (older.size, older.root):
        raise NoteProblem(f"a checkpoint of {said.size} records for a tree of {older.size}")


def _proved(where: str, said: Checkpoint, one: ProvedRecord) -> Record:
    hashes = _hashes(where, one.hashes)
    data = one.record.encode()
    if not check_inclusion(leaf_hash(data), one.seq - 1, said.size, hashes, said.root):
        raise _no(where, f"record {one.seq} is not in the tree of the checkpoint")
    try:
        record = read_record(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _no(where, f"record {one.seq} cannot be read: {problem}") from None
    if record.seq != one.seq:
        raise _no(where, f"record {one.seq} says that it is {record.seq}")
    return record


def _witnessed(where: str, proof: Proof, witness: VerifierKey) -> tuple[int, int]:
    """Size and time of the largest tree that the witness cosigned."""
    notes = [proof.checkpoint, *(older.checkpoint for older in proof.grown if older.checkpoint)]
    found = []
    for text in notes:
        note = parse_note(text)
        mine = (witness.name, witness.key_id)
        if not any((one.name, one.key_id) == mine for one in note.signatures):
            continue
        try:
            (right,) = verify_note(note, (witness,))
        except NoteProblem as problem:
            raise _no(where, str(problem)) from None
        found.append((parse_checkpoint(note.text).size, right.seconds or 0))
    if not found:
        raise _no(where, f"{witness!r} has countersigned none of its checkpoints")
    return max(found)


def _hashes(where: str, texts: Sequence[Hex]) -> tuple[Hash, ...]:
    for text in texts:
        if len(text) != 2 * HASH_SIZE or set(text) - set("0123456789abcdef"):
            raise _no(where, f"holds a hash that is none: {text[:80]!a}")
    return tuple(bytes.fromhex(text) for text in texts)


def _no(where: str, what: str) -> ProofProblem:
    return ProofProblem(where, what, "trust nothing of it; ask who made it for another one")


_ALTERED: Final = "the record or the note is not what it was: ask who altered it"


def no_progress(number: int) -> None:
    """No-op progress callback."""


class OlderSize(Struct, frozen=True):
    """A smaller tree and its checkpoint, if given."""

    size: int
    signed: SignedCheckpoint | None = None


# --- checkpoints ------------------------------------------------------------------------------


def last_signed(record: Path, table: VerifierKey | None = None) -> SignedCheckpoint:
    """The last checkpoint. Raises CannotProve if there is none; BadSignature, RecordDamaged."""
    for number in reversed(numbers(record)):
        found = list(_checkpoints(record, number, table))
        if found:
            return found[-1]
    raise CannotProve(record, "nothing of it is signed", "come back in a second")


def signed_as(
    record: Path, where: str, data: bytes, table: VerifierKey | None = None
) -> SignedCheckpoint:
    """The record's checkpoint in this note, with the note's cosignatures. Raises CannotProve if
    the record has no such checkpoint; BadSignature, RecordDamaged."""
    try:
        note = parse_note(data)
        said = parse_checkpoint(note.text)
    except NoteProblem as problem:
        raise CannotProve(where, f"is no checkpoint: {problem}", "give a signed note") from None
    origin = first_head(record).snapshot.origin
    if said.origin != origin:
        raise CannotProve(
            where,
            f"is a checkpoint of {said.origin}; this record is {origin}",
            "name the record that it is of",
        )
    start = segment_of(record, max(said.size, 1))
    for number in [one for one in numbers(record) if one >= start][:2]:
        for signed in _checkpoints(record, number, table):
            if signed.checkpoint == said:
                if signed.signature not in note.signatures:
                    raise CannotProve(where, "is not signed by the table", _ALTERED)
                return SignedCheckpoint(
                    signed.seq,
                    signed.boot,
                    data.decode(),
                    said,
                    signed.certificate,
                    signed.signature,
                )
    raise CannotProve(
        where, f"this record has no such checkpoint over {said.size} records", _ALTERED
    )


def _checkpoints(
    record: Path, number: int, table: VerifierKey | None
) -> Iterator[SignedCheckpoint]:
    segment = read_segment(record, number)
    signatures = SignatureReader(segment.snapshot.origin, table)
    signatures.begin(segment)
    for frame in segment.frames:
        signed = signatures.take(segment.place(frame), record_of(segment.file, frame))
        if signed is not None:
            yield signed


# --- proofs -----------------------------------------------------------------------------------


def make_proof(
    record: Path,
    seqs: Iterable[int],
    signed: SignedCheckpoint,
    older: Sequence[OlderSize] = (),
    tell: Callable[[int], None] = no_progress,
) -> Proof:
    """Prove that the tree of the checkpoint contains these records and extends the older ones.
    Raises CannotProve, RecordDamaged."""
    wanted = sorted(set(seqs))
    hashes = TreeHashes(record, wanted, signed, [one.size for one in older])
    texts = hashes.gather(tell, keep=frozenset(wanted))
    proved = [ProvedRecord(seq, texts[seq], hashes.inclusion(seq)) for seq in wanted]
    return Proof(
        FORMAT,
        signed.checkpoint.origin,
        signed.note,
        signed.certificate,
        tuple(proved),
        tuple(_grown(hashes, one) for one in older),
    )


def seqs_of_round(record: Path, number: int, signed: SignedCheckpoint) -> tuple[list[int], int]:
    """The records of a round that the checkpoint covers, and how many it does not cover yet, not
    counting checkpoints. Raises CannotProve if it covers none."""
    found = list(matches(record, Selection(first=number, last=number)))
    seqs = [one.seq for one in found if one.seq <= signed.checkpoint.size]
    if not seqs:
        retired = where_retired(record, rounds=(number, number))
        before = "" if retired or found else gone_before(record)
        if before:
            raise CannotProve(
                record, f"{before}, and nothing of round {number} in the others", PUT_BACK
            )
        what = f"nothing of round {number} is signed" if found else f"there is no round {number}"
        raise CannotProve(record, retired or what, "name a round that was played, and is here")
    return seqs, sum(not one.signs for one in found[len(seqs) :])


def _grown(hashes: TreeHashes, older: OlderSize) -> OlderTree:
    root, proof = hashes.consistency(older.size)
    signed = older.signed
    if signed is None:
        return OlderTree(older.size, root.hex(), proof)
    if root != signed.checkpoint.root:
        raise CannotProve(
            hashes.record,
            f"the first {older.size} records have another root than its checkpoint",
            "the record was altered: ask who did",
        )
    return OlderTree(older.size, root.hex(), proof, signed.note, signed.certificate)


class TreeHashes:
    """Hashes of a record's subtrees, for proofs against one of its checkpoints."""

    def __init__(
        self, record: Path, seqs: Sequence[int], signed: SignedCheckpoint, sizes: Sequence[int] = ()
    ) -> None:
        """Raises CannotProve if the checkpoint does not cover what is to be proved."""
        self.record = record
        self._said = signed.checkpoint
        size = self._said.size
        for seq in seqs:
            if not 1 <= seq <= size:
                raise CannotProve(
                    record,
                    f"the checkpoint is not over record {seq}",
                    f"allowed: 1 to {size}; a new record is signed within a second",
                )
        for old in sizes:
            if not 1 <= old <= size:
                raise CannotProve(
                    record,
                    f"a tree of {old} records does not come before one of {size}",
                    f"allowed: 1 to {size}",
                )
        self._first = min((*seqs, *sizes), default=size)
        ranges = {one for seq in seqs for one in inclusion_ranges(seq - 1, size)}
        for old in sizes:
            ranges.update(consistency_ranges(old, size), ((0, old),))
        self._wanted = {block for one in ranges for block in blocks(*one)}
        self._found: dict[Block, Hash] = {}

    def gather(
        self, tell: Callable[[int], None] = no_progress, keep: Collection[int] = frozenset()
    ) -> dict[int, str]:
        """Read the record; returns the encoded records of `keep`. Raises RecordDamaged."""
        kept: dict[int, str] = {}
        size = self._said.size
        for segment in segments(self.record, segment_of(self.record, self._first)):
            tell(segment.number)
            covered = [frame for frame in segment.frames if frame.seq <= size]
            kept |= {one.seq: _text(segment, one) for one in covered if one.seq in keep}
            tree = PartOfTree(segment.tree, [leaf_hash(frame.data) for frame in covered])
            for begin, level in self._wanted - self._found.keys():
                if begin + (1 << level) <= tree.size:
                    self._found[begin, level] = tree.top(begin, level)
            if tree.size == size:
                if tree.root(size) != self._said.root:
                    what = f"the first {size} records have another root than is signed"
                    raise RecordDamaged(self.record, what, ASK)
                return kept
        raise RecordDamaged(
            self.record, f"it ends before record {self._said.size}, which a checkpoint is over", ASK
        )

    def inclusion(self, seq: int) -> tuple[str, ...]:
        ranges = inclusion_ranges(seq - 1, self._said.size)
        return tuple(self._subtree(one).hex() for one in ranges)

    def consistency(self, old: int) -> tuple[Hash, tuple[str, ...]]:
        """The root of the older tree, and the proof."""
        ranges = consistency_ranges(old, self._said.size)
        return self._subtree((0, old)), tuple(self._subtree(one).hex() for one in ranges)

    def _subtree(self, leaves: Range) -> Hash:
        begin, end = leaves
        return Span.of(begin, end, [self._found[one] for one in blocks(begin, end)]).root()


def _text(segment: RecordSegment, frame: RecordFrame) -> str:
    try:
        return frame.data.decode()
    except UnicodeDecodeError:
        raise RecordDamaged(segment.file, f"record {frame.seq} is not UTF-8", ASK) from None
