"""`holecard audit`: look at the record of a table, check it, and take what it says elsewhere."""

from __future__ import annotations

import argparse
from typing import Final

from controller.audit.commands.approve_tail import add_accept
from controller.audit.commands.export import add_check_case, add_export
from controller.audit.commands.index import add_rebuild, add_sql
from controller.audit.commands.open_hole import add_open
from controller.audit.commands.proofs import add_check_proof, add_prove
from controller.audit.commands.retire import add_retire
from controller.audit.commands.show import add_show, add_tail
from controller.audit.commands.verify import add_verify
from controller.audit.commands.witness import add_cosign, add_witnessed

_CODES: Final = """\
Exit codes: 0 done, or yes; 1 the answer is no, or a record is not as it must be; 2 wrong
arguments, a file that cannot be used, or a place without a record; 3 (verify) nothing is wrong,
but not all could be checked; 74 the output or a record cannot be written; 130 interrupted; 141 the
reader of the output has gone.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    audit = subparsers.add_parser(
        "audit",
        help="verify, show and export a table's record",
        description="Looks at the record of a table, checks it, and exports what it says.",
        epilog=f"`holecard audit COMMAND --help` explains a command, with examples.\n\n{_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = audit.add_subparsers(metavar="COMMAND", required=True)
    for add in (
        add_verify,
        add_show,
        add_tail,
        add_open,
        add_accept,
        add_sql,
        add_rebuild,
        add_export,
        add_check_case,
        add_prove,
        add_check_proof,
        add_cosign,
        add_witnessed,
        add_retire,
    ):
        add(commands)
