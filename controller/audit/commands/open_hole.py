"""`holecard audit open`: surveillance opens the hole card of a voided round."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from controller.audit.commands.common import (
    Subparsers,
    command,
    path_of,
    print_json,
    rounds_of,
    text_of,
)
from controller.audit.keys import load_surveillance_private
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.replay import SealedHoleCard, open_hole_card, sealed_hole_cards
from controller.audit.text import format_time
from controller.procedure.prompts import card_words
from controller.rules.cards import NAMES, Card
from controller.terminal import keys_directory_of, usage_errors

EXAMPLES: Final = """\
examples:
  holecard audit open run/mega-1 --round 17 --keys surveillance --by Ann --reason "dispute 4711"

On surveillance's own machine, with its private key. Only the hole card of a round that was voided
is opened: any other was turned over, and stands in the record, or lies on the table still. Who
opened it and why is written beside the record, in RECORD.looks.jsonl, before the card is shown.
"""


def add_open(subparsers: Subparsers) -> None:
    does = "open the hole card of a voided round, with surveillance's key"
    parser = command(subparsers, "open", does, open_, EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory, or a copy of it")
    parser.add_argument("--round", metavar="N", required=True, help="the voided round")
    parser.add_argument("--keys", metavar="DIR", help="the directory with surveillance.key")
    parser.add_argument("--by", metavar="NAME", help="who opens it (default: the user's name)")
    parser.add_argument("--reason", metavar="WORDS", help="why")


def open_(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    turn, _ = rounds_of(args.round, single=True)
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    with usage_errors():
        private = load_surveillance_private(keys_directory_of(args))
    with to_its_end(record):
        holes = sealed_hole_cards(record, turn)
        log_access(record, "open hole card", f"round {turn}", who=who, reason=reason)
        _show([(hole, open_hole_card(record, hole, private)) for hole in holes], json=args.json)
    return 0


def _show(found: Sequence[tuple[SealedHoleCard, Card]], *, json: bool) -> None:
    if json:
        print_json(
            [
                {"round": hole.round, "seq": hole.seq, "utc": hole.utc, "card": NAMES[card]}
                for hole, card in found
            ]
        )
        return
    for hole, card in found:
        dealt = f"dealt at {format_time(hole.utc)}, record {hole.seq}"
        print(
            f"round {hole.round}: the hole card was the {card_words(card)} ({NAMES[card]}), {dealt}"
        )
