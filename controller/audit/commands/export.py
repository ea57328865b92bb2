"""`holecard audit export` and `check-case`: sealed cases, CSV and JSON Lines."""

from __future__ import annotations

import argparse
import re
from datetime import date
from pathlib import Path
from typing import Final

from controller.audit.commands.common import (
    Subparsers,
    command,
    path_of,
    print_bytes,
    print_json,
    progress,
    rounds_of,
    say,
    text_of,
    writing,
)
from controller.audit.export import CaseCheck, check_case, check_free, rows
from controller.audit.export import case as export
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.heads import first_head, gone_before
from controller.audit.read.retirements import retirement_files, sha256_of
from controller.audit.read.retirements import where_retired as was_retired
from controller.audit.read.selection import Selection
from controller.errors import UsageProblem, printable

EXPORT_EXAMPLES: Final = """\
examples:
  holecard audit export run/mega-1 --round 31 --out case-31.zip --by Eve --reason "complaint 7"
  holecard audit export run/mega-1 --day 2027-01-15 --out friday
  holecard audit export run/mega-1 --round 31-40 --format csv --out rounds.csv
  holecard audit export run/mega-1 --format jsonl | wc -l

A case holds whole segments, signed checkpoints, certificates, proofs, the page of the format and a
program that checks it all without us: unpack it and run `python3 verify_record.py record`.
The table may be running. That somebody exported is noted in RECORD.looks.jsonl before anything is
read; where that cannot be written, nothing is exported. A hole card that was not turned over is in
no export but as its commitment and as what is sealed to surveillance.
"""
CHECK_CASE_EXAMPLES: Final = """\
examples:
  holecard audit check-case case-31.zip
  holecard audit check-case case-31 --seal 5f2b... --json
  holecard audit check-case 2026.zip --retired-from run/mega-1
"""
_SEAL: Final = re.compile(r"[0-9A-Fa-f]{64}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def add_export(subparsers: Subparsers) -> None:
    does = "export a sealed case, or records as CSV or JSON Lines"
    parser = command(subparsers, "export", does, export_record, EXPORT_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--round", metavar="N[-M]", help="a round, or rounds from one to another")
    what.add_argument("--day", metavar="YYYY-MM-DD", help="a gaming day")
    what.add_argument("--all", action="store_true", help="the whole record (the default)")
    parser.add_argument(
        "--format", choices=("case", "jsonl", "csv"), default="case", help="default: case"
    )
    where = "where it goes; CSV and JSON Lines go to stdout without it"
    parser.add_argument("--out", metavar="FILE.zip|DIR", help=where)
    parser.add_argument("--by", metavar="NAME", help="who asks (default: the user's name)")
    parser.add_argument("--reason", metavar="TEXT", help="why")


def add_check_case(subparsers: Subparsers) -> None:
    does = "check that the files of a case are those that it was made of"
    parser = command(subparsers, "check-case", does, run_check_case, CHECK_CASE_EXAMPLES)
    parser.add_argument("case", metavar="CASE", help="a zip or a directory")
    parser.add_argument("--seal", metavar="HEX", help="the seal that was told when it was made")
    parser.add_argument(
        "--retired-from", metavar="RECORD", help="whether it is what was retired from this record"
    )


def export_record(args: argparse.Namespace) -> int:
    record, pick = path_of("RECORD", args.record), _pick(args)
    out = None if args.out is None else path_of("--out", args.out)
    with to_its_end(record):
        if args.format != "case":
            return _export_rows(args, record, pick, out)
        if out is None:
            raise UsageProblem("--out", "is missing", "FILE.zip or a directory to be made")
        return _export_case(args, record, pick, out)


def _export_case(args: argparse.Namespace, record: Path, pick: Selection, out: Path) -> int:
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    with writing(out), progress() as tell:
        case = export.export_case(record, out, pick, who=who, reason=reason, tell=tell)
    manifest = case.manifest
    for words in manifest.remarks:
        say(words)
    if args.json:
        files = len(manifest.files)
        print_json(
            {
                "out": printable(out),
                "seal": case.seal,
                "origin": manifest.origin,
                "segments": manifest.segments,
                "records": manifest.records,
                "files": files,
                "remarks": manifest.remarks,
            }
        )
        return 0
    first, last = manifest.records
    here = "all that is here" if pick.everything and manifest.segments[0] > 1 else str(pick)
    print(f"{printable(out)}: {here} of {manifest.origin}, records {first} to {last}")
    print(f"seal {case.seal}")
    say("write the seal down; whoever gets the case checks it: holecard audit check-case")
    return 0


def _export_rows(args: argparse.Namespace, record: Path, pick: Selection, out: Path | None) -> int:
    first_head(record)
    if out is not None:
        check_free(out)
    name = "stdout" if out is None else printable(out.name)
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    retired = was_retired(record, rounds=(pick.first, pick.last), day=pick.day)
    gone = retired or gone_before(record)
    if gone:
        say(gone)
    log_access(record, f"export {args.format}", str(pick), who=who, reason=reason, out=name)
    with progress() as tell:
        lines = rows.rows(record, pick, args.format, tell)
        if out is None:
            for line in lines:
                print_bytes(line)
            return 0
        with writing(out):
            count = rows.write_rows(out, lines)
    shown = {"out": printable(out), "records": count - (args.format == "csv")}
    if args.json:
        print_json(shown)
    else:
        print(f"{shown['out']}: {pick}, {shown['records']} records")
    return 0


def run_check_case(args: argparse.Namespace) -> int:
    if args.seal is not None and not _SEAL.fullmatch(args.seal):
        raise UsageProblem("--seal", f"{args.seal[:80]!a} is no seal", "64 hex digits")
    case = path_of("CASE", args.case)
    found: CaseCheck = check_case(case)
    wrong = list(found.wrong)
    if args.retired_from is not None:
        wrong += _other_case(case, path_of("--retired-from", args.retired_from))
    if args.seal is not None and args.seal.lower() != found.seal:
        wrong.append("manifest.json: is not the one that was sealed")
    if args.json:
        print_json({"right": not wrong, "seal": found.seal, "wrong": wrong})
    else:
        for words in wrong:
            print(printable(words))
        files = len(found.manifest.files)
        print(f"{'wrong' if wrong else 'right'}: {files} files, seal {found.seal}")
    if args.seal is None:
        say("hold the seal against the one that was told when the case was made")
    return 1 if wrong else 0


def _other_case(case: Path, record: Path) -> list[str]:
    """What is wrong where it is none that was retired from this record, whose notes `verify`
    proves. NoRecord, Damaged."""
    first_head(record)
    cases = {one.said.case for one in retirement_files(record) if one.said is not None}
    same = case.is_file() and sha256_of(case) in cases
    return [] if same else ["it is no case that was retired from this record"]


def _pick(args: argparse.Namespace) -> Selection:
    if args.round is not None:
        first, last = rounds_of(args.round)
        return Selection(first, last)
    if args.day is None:
        return Selection()
    try:
        if not _DAY.fullmatch(args.day):
            raise ValueError(args.day)
        date.fromisoformat(args.day)
    except ValueError:
        raise UsageProblem("--day", f"{args.day!a} is no day", "YYYY-MM-DD") from None
    return Selection(day=args.day)
