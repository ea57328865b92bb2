"""`holecard audit`: look at the record of a table, check it, and take what it says elsewhere."""

from __future__ import annotations

import argparse

from controller.audit import cli_cases
from controller.audit.cli_common import CODES


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    audit = subparsers.add_parser(
        "audit",
        help="check, prove and export the record of a table",
        description="Looks at the record of a table, checks it, and exports what it says.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = audit.add_subparsers(metavar="COMMAND", required=True)
    cli_cases.add_all(commands)
