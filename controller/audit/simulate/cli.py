"""`holecard script`: the options of `controller.sim.scripts`, and those for a record."""

from __future__ import annotations

from typing import Final

from controller.commands import Subparsers
from controller.sim.scripts import register_script

RECORD_EXAMPLES: Final = """\
records:
  holecard script run rounds.json --record run/scripts
  holecard script run rounds.json --record run/scripts --keys run/keys

With --record every event stands in the record DIR, signed, its hole cards bound and sealed, before
anything is shown. A record that is there already is continued; it must be one of scripts. Each
round is dealt from a shuffle, so the rounds' numbers go on; one that is not the first of its
shuffle has a plain round before it, and one that the script leaves open is voided.

More exit codes with --record: 1 the record is damaged, or is not what the rules make of it; 2 DIR
is no record of scripts, is in use, or cannot be written; 74 the disk has failed or is full. What
was recorded by then stays, and the next run goes on from there.
"""


def register(subparsers: Subparsers) -> None:
    run = register_script(subparsers)
    run.add_argument("--record", metavar="DIR", help="record every event in this directory")
    run.add_argument(
        "--keys",
        metavar="DIR",
        help="the directory of the keys for --record: those of the table, of hole cards and "
        "surveillance.pub (default: demo keys, made in the record's own directory)",
    )
    run.epilog = f"{run.epilog}\n{RECORD_EXAMPLES}"
    run.set_defaults(func="controller.audit.simulate.command:play")
