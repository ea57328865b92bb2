"""`holecard audit retire`: old gaming days into a sealed case, and out of the record."""

from __future__ import annotations

import argparse
import os
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from controller.audit.commands.common import Subparsers, command, path_of, print_json, progress, say
from controller.audit.commands.common import writing as writing_to
from controller.audit.export import retire
from controller.audit.keys import load_table_private
from controller.audit.read.heads import first_head
from controller.audit.read.retirements import in_words
from controller.errors import UsageProblem, printable
from controller.terminal import (
    PromptCancelled,
    check_two_people,
    keys_directory_of,
    two_people,
    usage_errors,
)

EXAMPLES: Final = """\
examples:
  holecard audit retire run/mega-1 --before 2027-01-01 --out 2026.zip --by Ann --and Bo
  holecard audit retire run/mega-1 --before 2027-01-01 --out 2026.zip --keys run/keys \\
    --by Ann --and Bo --json

Whole segments with nothing but older gaming days go, from the first on: into a sealed case, a zip,
which is synced and checked; then a note of them, signed with the table's key, goes into
RECORD/retired; then they are removed. Nothing brings them back but the case, so two different
people say so. The open segment stays, with the one before it where a start needs that, and so does
an open round. `verify` then says what was retired, and is as right as before.

The table is off meanwhile, and best closed: what a start reads further back, the cards seen of a
shoe that is in play and wrong PINs of the last day, goes with its segments.

Where nothing is so old, the record is not right or the case does not check, the exit code is 1, and
nothing is removed. Where a removal was cut short, the same command with the same case ends it.
"""
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FORM: Final = "YYYY-MM-DD, today or before"


def add_retire(subparsers: Subparsers) -> None:
    does = "take old gaming days out of a record, into a sealed case"
    parser = command(subparsers, "retire", does, retire_days, EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    parser.add_argument(
        "--before", metavar="DAY", required=True, help="the first gaming day that stays"
    )
    parser.add_argument("--out", metavar="FILE.zip", required=True, help="the case")
    place = "the directory with table.key (default: RECORD/keys, where it has one)"
    parser.add_argument("--keys", metavar="DIR", help=place)
    parser.add_argument("--by", metavar="NAME", help="who says so")
    parser.add_argument(
        "--second", "--and", metavar="NAME", dest="second", help="the second person"
    )


def retire_days(args: argparse.Namespace) -> int:
    record, out = path_of("RECORD", args.record), path_of("--out", args.out)
    check_two_people(args)
    before = _day(args.before)
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
        return 1
    with writing_to(out), progress() as tell:
        jobs = len(os.sched_getaffinity(0))
        made = retire(record, before, out, names, table_key, jobs=jobs, tell=tell)
    said = made.said
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
        print("the retirement that was cut short is ended")
    print(f"{printable(out)}: segments {first} to {last}, gaming days {begins} to {ends}")
    print(printable(in_words(said)))
    print(f"seal {said.seal}")
    say(f"what stays of them is in {printable(Path(record, made.note))}; keep the case")
    return 0


def _day(text: str) -> str:
    try:
        if not _DAY.fullmatch(text):
            raise ValueError(text)
        day = date.fromisoformat(text)
    except ValueError:
        raise UsageProblem("--before", f"{text!a} is no day", _FORM) from None
    if day > datetime.now(UTC).date():
        raise UsageProblem("--before", f"{text} is in the future", _FORM)
    return text
