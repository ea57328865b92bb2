"""Stand-alone proofs of records."""

from __future__ import annotations

from controller.audit.proofs.proof_file import (
    FORMAT,
    MOST_BYTES,
    CheckedProof,
    Proof,
    ProvedRecord,
    check_proof,
    encode_proof,
)
from controller.audit.proofs.prover import TreeHashes, last_signed, prove, signed_as, untold

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "CheckedProof",
    "Proof",
    "ProvedRecord",
    "TreeHashes",
    "check_proof",
    "encode_proof",
    "last_signed",
    "prove",
    "signed_as",
    "untold",
]
