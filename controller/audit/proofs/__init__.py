"""Stand-alone proofs of records."""

from __future__ import annotations

from controller.audit.proofs.proof_file import (
    FORMAT,
    MOST_BYTES,
    CheckedProof,
    Proof,
    ProvedRecord,
    decode_proof,
    encode_proof,
    verify_proof,
)
from controller.audit.proofs.prover import (
    OlderSize,
    TreeHashes,
    last_signed,
    make_proof,
    seqs_of_round,
    signed_as,
    untold,
)

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "CheckedProof",
    "OlderSize",
    "Proof",
    "ProvedRecord",
    "TreeHashes",
    "decode_proof",
    "encode_proof",
    "last_signed",
    "make_proof",
    "seqs_of_round",
    "signed_as",
    "untold",
    "verify_proof",
]
