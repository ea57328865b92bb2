"""`holecard audit open`: surveillance opens the hole card of a voided round."""

from __future__ import annotations

import argparse

from controller.audit.commands.common import rounds_of
from controller.audit.keys import load_surveillance_private
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.replay import open_hole_card, sealed_hole_cards
from controller.audit.text import format_time
from controller.commands import path_of, print_json, text_of
from controller.procedure.prompts import card_words
from controller.rules.cards import NAMES
from controller.terminal import keys_directory_of, usage_errors


def open_card(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    turn, _ = rounds_of(args.round, single=True)
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    with usage_errors():
        private = load_surveillance_private(keys_directory_of(args))
    with to_its_end(record):
        holes = sealed_hole_cards(record, turn)
        log_access(record, "open hole card", f"round {turn}", who=who, reason=reason)
        found = [(hole, open_hole_card(record, hole, private)) for hole in holes]
        if args.json:
            print_json(
                [
                    {"round": hole.round, "seq": hole.seq, "utc": hole.utc, "card": NAMES[card]}
                    for hole, card in found
                ]
            )
            return 0
        for hole, card in found:
            name, at = f"{card_words(card)} ({NAMES[card]})", format_time(hole.utc)
            print(f"round {turn}: the hole card was the {name}, dealt at {at}, record {hole.seq}")
    return 0
