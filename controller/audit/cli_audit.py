"""`holecard audit`: look at the record of a table, check it, and take what it says elsewhere."""

from __future__ import annotations

import argparse

from controller.audit import cli_cases
from controller.audit.cli_accept import add_accept
from controller.audit.cli_common import CODES
from controller.audit.cli_index import add_rebuild, add_sql
from controller.audit.cli_open import add_open
from controller.audit.cli_show import add_show, add_tail
from controller.audit.cli_verify import add_verify


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    audit = subparsers.add_parser(
        "audit",
        help="verify, show and export a table's record",
        description="Looks at the record of a table, checks it, and exports what it says.",
        epilog=f"`holecard audit COMMAND --help` explains a command, with examples.\n\n{CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = audit.add_subparsers(metavar="COMMAND", required=True)
    for add in (add_verify, add_show, add_tail, add_open, add_accept, add_sql, add_rebuild):
        add(commands)
    cli_cases.add_all(commands)
