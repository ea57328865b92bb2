"""`holecard audit accept-tail`: two people accept unexplained bytes, so that the record opens."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from controller.audit.keys import load_table_private
from controller.audit.log import TAILS
from controller.audit.replay import TailApproval, UnexplainedBytes
from controller.commands import path_of, say, show
from controller.errors import EXIT_NO, UsageProblem, printable
from controller.terminal import (
    PromptCancelled,
    ask,
    at_terminal,
    check_two_people,
    keys_directory_of,
    two_people,
    usage_errors,
)

_ASK: Final = "Quarantine them, and let the record open again? Type yes: "
_YES: Final = "yes"


def accept(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    check_two_people(args)
    if not args.yes and not at_terminal():
        raise UsageProblem("--yes", "is missing: there is no terminal to ask at", "--yes")
    with usage_errors():
        table_key = load_table_private(keys_directory_of(args))
    try:
        names = two_people(args)
        with TailApproval.at(record, names) as found:
            bytes_ = found.bytes
            _print_bytes(bytes_)
            if not args.yes and ask(_ASK) != _YES:
                raise PromptCancelled
            seq = found.accept(table_key)
    except PromptCancelled:
        say("nothing was done")
        return EXIT_NO
    who = " and ".join(map(printable, names))
    answer = {
        "segment": bytes_.segment,
        "offset": bytes_.offset,
        "size": bytes_.size,
        "sha256": bytes_.sha256,
        "two": names,
        "seq": seq,
    }
    text = f"{bytes_.size} bytes are in {TAILS}/, accepted by {who}; the record goes to {seq}"
    show(args, answer, text)
    return 0


def _print_bytes(found: UnexplainedBytes) -> None:
    """Describe the bytes before anyone accepts them."""
    lines = (
        f"there are {found.size} bytes after the last record that no power loss explains:",
        f"  segment {found.segment:08d}, offset {found.offset}",
        f"  SHA-256 {found.sha256}",
        f"  they begin with {found.begin.hex(' ')}",
        f"they are stored in {TAILS}/, removed from the segment, and this is recorded",
    )
    print("\n".join(lines), file=sys.stderr)
