"""Commands that need keys and people: `open` a hole card, `accept-tail`, `retire` old days."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from controller.audit.commands.common import day_of, rounds_of, segment_progress
from controller.audit.export import retire_segments
from controller.audit.keys import load_surveillance_private, load_table_private
from controller.audit.log import TAILS
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.lookup import first_head
from controller.audit.read.retirements import in_words
from controller.audit.replay import (
    TailApproval,
    UnexplainedBytes,
    open_hole_card,
    sealed_hole_cards,
)
from controller.audit.text import format_time
from controller.commands import os_errors, path_of, print_json, say, show, text_of
from controller.errors import EXIT_NO, UsageProblem, printable
from controller.procedure.prompts import card_words
from controller.rules.cards import NAMES
from controller.terminal import (
    PromptCancelled,
    ask,
    at_terminal,
    check_two_people,
    keys_directory_of,
    two_people,
    usage_errors,
)

_DAYS: Final = "YYYY-MM-DD, today or before"


def retire_days(args: argparse.Namespace) -> int:
    record, out = path_of("RECORD", args.record), path_of("--out", args.out)
    check_two_people(args)
    if day_of("--before", args.before, _DAYS) > datetime.now(UTC).date():
        raise UsageProblem("--before", f"{args.before} is in the future", _DAYS)
    if out.suffix != ".zip":
        raise UsageProblem("--out", f"{str(out)!a} is no zip", "FILE.zip")
    first_head(record)
    if args.keys is None and (record / "keys" / "table.key").is_file():
        args.keys = str(record / "keys")
    with usage_errors():
        table_key = load_table_private(keys_directory_of(args))
    try:
        names = two_people(args)
    except PromptCancelled:
        say("nothing was done")
        return EXIT_NO
    with os_errors("--out", out, "another place"), segment_progress() as on_segment:
        made = retire_segments(
            record,
            args.before,
            out,
            names,
            table_key,
            jobs=len(os.sched_getaffinity(0)),
            on_segment=on_segment,
        )
    said = made.retirement
    if args.json:
        print_json(
            {
                "out": printable(out),
                "case": said.case,
                "seal": said.seal,
                "segments": said.segments,
                "records": said.records,
                "rounds": said.rounds,
                "days": said.days,
                "root": said.root,
                "note": made.note,
                "two": said.two,
                "ended": made.ended,
            }
        )
        return 0
    (first, last), (begins, ends) = said.segments, said.days
    if made.ended:
        print("the interrupted retirement is complete")
    print(f"{printable(out)}: segments {first} to {last}, gaming days {begins} to {ends}")
    print(printable(in_words(said)))
    print(f"seal {said.seal}")
    say(f"their signed summary is in {printable(Path(record, made.note))}; keep the case")
    return 0


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
        lines = [
            f"round {turn}: the hole card was the {card_words(card)} ({NAMES[card]}), "
            f"dealt at {format_time(hole.utc)}, record {hole.seq}"
            for hole, card in found
        ]
        answer = [
            {"round": hole.round, "seq": hole.seq, "utc": hole.utc, "card": NAMES[card]}
            for hole, card in found
        ]
        if args.json or lines:
            show(args, answer, "\n".join(lines))
    return 0


_ASK: Final = "Quarantine them, and let the record open again? Type yes: "
_YES: Final = "yes"


def accept_tail(args: argparse.Namespace) -> int:
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
