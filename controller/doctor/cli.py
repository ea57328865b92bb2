"""`holecard doctor`: declares the command that checks a table before it is served."""

from __future__ import annotations

from typing import Final

from controller.audit.cli import add_release_options
from controller.commands import READER_GONE, Subparsers, add_command, help_text

NOTES: Final = """\
Checks the table file, permissions, record, keys, clock, disk, people, devices, ports and system,
and changes nothing; a table may be served meanwhile. Below each line with WRONG or warn are the
problem and its solution, with commands that can be copied. Run it as the user who serves the table:
root may do what that user may not. With --release every file of the software and of what it needs
must be that of the signed list of a release, and no other code may run.
"""


def register(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "doctor",
        "check a table, and show how to fix its problems",
        "controller.doctor.command:run",
        description="Checks a table that is to be served, and shows how to fix its problems.",
        epilog=help_text(
            [
                "doctor mytable.toml",
                "doctor mytable.toml --json",
                "doctor mytable.toml --release holecard-0.1.0.release --release-key release.pub",
            ],
            NOTES,
            {
                0: "no problem, maybe warnings",
                1: "a problem was found",
                2: "wrong arguments, or not a table file",
            }
            | READER_GONE,
        ),
        json=True,
    )
    parser.add_argument(
        "config", metavar="CONFIG", help="the table file, or the name of an installed one"
    )
    add_release_options(parser)
