"""Proof files: records with everything that proves that a table signed them.

Verification needs the table's key, but neither the record nor the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.certificates import read_certificate
from controller.audit.format.merkle import (
    HASH_SIZE,
    Hash,
    check_consistency,
    check_inclusion,
    leaf_hash,
)
from controller.audit.format.notes import (
    Checkpoint,
    NoteProblem,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    verify_note,
)
from controller.audit.format.records import Record, read_record
from controller.audit.read.signatures import check_table_key, signed_checkpoint

FORMAT: Final = "holecard proof 1"
MOST_BYTES: Final = 1 << 28
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
            what = f"the tree of {said.size} records is not the one of {older.size}, grown"
            raise _no(where, what)
    grown = tuple(
        (older.size, bytes.fromhex(older.root), bool(older.checkpoint)) for older in proof.grown
    )
    if not records and not grown:
        raise _no(where, "holds no record and no older tree")
    seen = None if witness is None else _witnessed(where, proof, witness)
    if seen is None:
        return CheckedProof(said, records, grown, None)
    return CheckedProof(said, records, grown, seen[1], seen[0])


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
