"""`holecard audit accept-tail`: two people accept bytes that nothing explains, so that the record
opens again."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from controller.audit.commands.common import Subparsers, command, path_of, print_json, say
from controller.audit.keys import load_table_private
from controller.audit.log import TAILS
from controller.audit.replay import TailApproval, UnexplainedBytes
from controller.errors import UsageProblem, printable
from controller.terminal import (
    PromptCancelled,
    ask,
    at_terminal,
    check_two_people,
    keys_directory_of,
    two_people,
    usage_errors,
)

EXAMPLES: Final = """\
examples:
  holecard audit accept-tail run/mega-1 --keys run/keys
  holecard audit accept-tail run/mega-1 --keys run/keys --by Ann --second Bo --yes

A record does not open where bytes stand behind its last record that no loss of power explains:
somebody may have written them, or the disk is failing. They are shown first. Once two different
people have accepted it they are kept in the record's directory tails/, taken out of the segment,
and a boot begins, tells of it with both names, and ends. Records that were acknowledged and
cannot be read any more cannot be accepted.
"""
_ASK: Final = "Set them aside, and let the record open again? Type yes: "
_YES: Final = "yes"


def add_accept(subparsers: Subparsers) -> None:
    does = "have two people accept what stands unexplained behind the last record"
    parser = command(subparsers, "accept-tail", does, accept, EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    parser.add_argument("--keys", metavar="DIR", help="the directory with table.key")
    parser.add_argument("--by", metavar="NAME", help="who accepts it")
    parser.add_argument(
        "--second", "--and", metavar="NAME", dest="second", help="the second person"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask once more")


def accept(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    check_two_people(args)
    if not args.yes and not at_terminal():
        raise UsageProblem("--yes", "is missing: nobody is there to be asked", "--yes")
    with usage_errors():
        table_key = load_table_private(keys_directory_of(args))
    try:
        names = two_people(args)
        with TailApproval.at(record, names) as found:
            bytes_ = found.bytes
            _show(bytes_)
            if not args.yes and ask(_ASK) != _YES:
                raise PromptCancelled
            seq = found.accept(table_key)
    except PromptCancelled:
        say("nothing was done")
        return 1
    if args.json:
        print_json(
            {
                "segment": bytes_.segment,
                "offset": bytes_.offset,
                "size": bytes_.size,
                "sha256": bytes_.sha256,
                "two": names,
                "seq": seq,
            }
        )
    else:
        who = " and ".join(map(printable, names))
        print(f"{bytes_.size} bytes are in {TAILS}/, accepted by {who}; the record goes to {seq}")
    return 0


def _show(found: UnexplainedBytes) -> None:
    """What it is about, before anybody says yes to it."""
    lines = (
        f"behind the last record stand {found.size} bytes that no loss of power explains:",
        f"  segment {found.segment:08d}, offset {found.offset}",
        f"  SHA-256 {found.sha256}",
        f"  they begin with {found.begin.hex(' ')}",
        f"they are kept in {TAILS}/, taken out of the segment, and the record says so",
    )
    print("\n".join(lines), file=sys.stderr)
