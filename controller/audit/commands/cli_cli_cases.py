"""`holecard audit`: witnesses, proofs and exports, for those who check a record from outside."""

from __future__ import annotations

from controller.audit.commands.common import Subparsers
from controller.audit.commands.export import add_check_case, add_export
from controller.audit.commands.proofs import add_check_proof, add_prove
from controller.audit.commands.witness import add_cosign, add_witnessed

__all__ = [
    "add_all",
    "add_check_case",
    "add_check_proof",
    "add_cosign",
    "add_export",
    "add_prove",
    "add_witnessed",
]


def add_all(subparsers: Subparsers) -> None:
    """The parsers of these commands."""
    for add in (
        add_export,
        add_check_case,
        add_prove,
        add_check_proof,
        add_cosign,
        add_witnessed,
    ):
        add(subparsers)
