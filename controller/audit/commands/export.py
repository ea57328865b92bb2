"""`holecard audit export` and `check-case`: sealed cases, CSV and JSON Lines."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from controller.audit.commands.common import day_of, rounds_of, segment_progress
from controller.audit.export import check_case, check_free, export_case, record_rows, write_rows
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.lookup import Selection, first_head, gone_before
from controller.audit.read.retirements import retirement_files, sha256_of, where_retired
from controller.commands import os_errors, path_of, print_bytes, print_json, say, show, text_of
from controller.errors import EXIT_NO, UsageProblem, printable

_SEAL: Final = re.compile(r"[0-9A-Fa-f]{64}")
_OTHER_PLACE: Final = "another place"


def export_record(args: argparse.Namespace) -> int:
    record, pick = path_of("RECORD", args.record), _pick(args)
    out = None if args.out is None else path_of("--out", args.out)
    with to_its_end(record):
        if args.format != "case":
            return _export_rows(args, record, pick, out)
        if out is None:
            raise UsageProblem("--out", "is missing", "FILE.zip or a new directory")
        return _export_case(args, record, pick, out)


def _export_case(args: argparse.Namespace, record: Path, pick: Selection, out: Path) -> int:
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    with os_errors("--out", out, _OTHER_PLACE), segment_progress() as on_segment:
        case = export_case(record, out, pick, who=who, reason=reason, on_segment=on_segment)
    manifest = case.manifest
    for remark in manifest.remarks:
        say(remark)
    if args.json:
        print_json(
            {
                "out": printable(out),
                "seal": case.seal,
                "origin": manifest.origin,
                "segments": manifest.segments,
                "records": manifest.records,
                "files": len(manifest.files),
                "remarks": manifest.remarks,
            }
        )
        return 0
    first, last = manifest.records
    here = "all that is here" if pick.everything and manifest.segments[0] > 1 else str(pick)
    print(f"{printable(out)}: {here} of {manifest.origin}, records {first} to {last}")
    print(f"seal {case.seal}")
    say("write the seal down; who receives the case checks it: holecard audit check-case")
    return 0


def _export_rows(args: argparse.Namespace, record: Path, pick: Selection, out: Path | None) -> int:
    first_head(record)
    if out is not None:
        check_free(out)
    name = "stdout" if out is None else printable(out.name)
    who, reason = text_of("--by", args.by), text_of("--reason", args.reason)
    retired = where_retired(record, rounds=(pick.first, pick.last), day=pick.day)
    gone = retired or gone_before(record)
    if gone:
        say(gone)
    log_access(record, f"export {args.format}", str(pick), who=who, reason=reason, out=name)
    with segment_progress() as on_segment:
        lines = record_rows(record, pick, args.format, on_segment)
        if out is None:
            for line in lines:
                print_bytes(line)
            return 0
        with os_errors("--out", out, _OTHER_PLACE):
            count = write_rows(out, lines) - (args.format == "csv")
    show(
        args,
        {"out": printable(out), "records": count},
        f"{printable(out)}: {pick}, {count} records",
    )
    return 0


def check_case_file(args: argparse.Namespace) -> int:
    """`check-case`."""
    if args.seal is not None and not _SEAL.fullmatch(args.seal):
        raise UsageProblem("--seal", f"{args.seal[:80]!a} is no seal", "64 hex digits")
    case = path_of("CASE", args.case)
    found = check_case(case)
    wrong = list(found.wrong)
    if args.retired_from is not None and not _is_retired_from(
        path_of("--retired-from", args.retired_from), case
    ):
        wrong.append("it is no case that was retired from this record")
    if args.seal is not None and args.seal.lower() != found.seal:
        wrong.append("manifest.json: is not the one that was sealed")
    verdict = f"{'wrong' if wrong else 'right'}: {len(found.manifest.files)} files"
    show(
        args,
        {"right": not wrong, "seal": found.seal, "wrong": wrong},
        "\n".join([*map(printable, wrong), f"{verdict}, seal {found.seal}"]),
    )
    if args.seal is None:
        say("compare the seal with the one that was printed at the export")
    return EXIT_NO if wrong else 0


def _is_retired_from(record: Path, case: Path) -> bool:
    """Returns whether a retirement of `record` names this case; `verify` proves those notes."""
    first_head(record)
    cases = {one.said.case for one in retirement_files(record) if one.said is not None}
    return case.is_file() and sha256_of(case) in cases


def _pick(args: argparse.Namespace) -> Selection:
    if args.round is not None:
        first, last = rounds_of(args.round)
        return Selection(first, last)
    return Selection() if args.day is None else Selection(day=day_of("--day", args.day).isoformat())
