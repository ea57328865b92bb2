"""Stand-alone proofs of records."""

from __future__ import annotations

from controller.audit.proofs.proof_file import (
    FORMAT,
    MOST_BYTES,
    Checked,
    Proof,
    Proved,
    check_proof,
    packed,
)
from controller.audit.proofs.prover import Hashes, last_signed, prove, signed_as, untold

__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "Checked",
    "Hashes",
    "Proof",
    "Proved",
    "check_proof",
    "last_signed",
    "packed",
    "prove",
    "signed_as",
    "untold",
]
