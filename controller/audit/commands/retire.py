"""`holecard audit retire`: moves old gaming days from a record to a sealed case."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from controller.audit.commands.common import day_of, segment_progress
from controller.audit.export import retire_segments
from controller.audit.keys import load_table_private
from controller.audit.read.lookup import first_head
from controller.audit.read.retirements import in_words
from controller.commands import os_errors, path_of, print_json, say
from controller.errors import EXIT_NO, UsageProblem, printable
from controller.terminal import (
    PromptCancelled,
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
        jobs = len(os.sched_getaffinity(0))
        made = retire_segments(
            record, args.before, out, names, table_key, jobs=jobs, on_segment=on_segment
        )
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
        print("the interrupted retirement is complete")
    print(f"{printable(out)}: segments {first} to {last}, gaming days {begins} to {ends}")
    print(printable(in_words(said)))
    print(f"seal {said.seal}")
    say(f"their signed summary is in {printable(Path(record, made.note))}; keep the case")
    return 0
