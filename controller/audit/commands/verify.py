"""`holecard audit verify`: a whole record held against everything that it says of itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.commands.common import (
    Subparsers,
    bytes_of,
    given_table,
    given_witness,
    path_of,
    print_json,
)
from controller.audit.errors import RecordProblem
from controller.audit.format.notes import NoteProblem, VerifierKey
from controller.audit.read.heads import first_head
from controller.audit.text import format_time
from controller.audit.verify import (
    INCOMPLETE,
    INVALID,
    SeenCheckpoint,
    Verification,
    VerifyProgress,
    VerifyReport,
    seen_by_witness,
)
from controller.errors import UsageProblem, printable
from controller.procedure.prompts import counted

EXAMPLES: Final = """\
examples:
  holecard audit verify run/mega-1
  holecard audit verify run/mega-1 --table-key papers/table.pub
  holecard audit verify copy --checkpoint mega-1.note --witness-key archive/witness.pub
  holecard audit verify run/mega-1 --no-replay --json

RECORD may be in use, a copy, or a mount that is read only; nothing is changed. Every frame, hash,
signature, clock and cursor is checked, every opening is held against its commitment, and every
decision is made again by the rules: a payout that they would not have made is found even where
it was recorded perfectly. What a record alone cannot show is that its end was cut off, or that
somebody with the table's key wrote it anew: for that give what a witness has countersigned.

Exit codes: 0 right; 1 wrong: the first bad place is told first; 2 wrong arguments, or a place
that cannot be read; 3 nothing is wrong, but not all could be checked: decisions of another version
(which one is said), or segments that are not there; 74 the output cannot be written; 130
interrupted; 141 the reader of the output has gone.
"""
_SHOWN: Final = 20
"""Findings that are told one by one."""
_FEW: Final = 4
"""Segments that are sooner read by one process than others are started."""


def add_verify(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="check all of a record",
        description="Checks all of a record.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("record", metavar="RECORD", help="the record's directory, or a copy of it")
    parser.add_argument(
        "--no-replay",
        action="store_true",
        help="leave out what decisions say: several times as fast",
    )
    parser.add_argument(
        "--table-key",
        metavar="VKEY|FILE",
        help="the table's key from elsewhere: a verifier key, or the file table.pub",
    )
    parser.add_argument("--checkpoint", metavar="NOTE", help="what a witness has countersigned")
    parser.add_argument("--witness-key", metavar="VKEY|FILE", help="the key of that witness")
    parser.add_argument(
        "--jobs", metavar="N", type=_jobs, help="processes (default: one for each processor)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=verify)


def verify(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    witness = _witness(args)
    run = Verification(
        record,
        replay=not args.no_replay,
        table_key=_table_key(args.table_key, record),
        witness=witness,
        jobs=args.jobs or _processors(record),
    )
    with _progress() as tell, closing(run.steps()) as steps:
        for step in steps:
            tell(step)
    report = run.report
    if args.json:
        print_json({**msgspec.to_builtins(report), "exit": report.code})
    else:
        for line in words(report, replay=not args.no_replay, witness=witness):
            print(printable(line))
    return report.code


# --- arguments --------------------------------------------------------------------------------


def _jobs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:5]) <= 256:
        raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; allowed: 1 to 256")
    return int(text)


def _processors(record: Path) -> int:
    few = len(list((record / "segments").glob("0*.seg"))) <= _FEW
    return 1 if few else len(os.sched_getaffinity(0))


def _table_key(value: str | None, record: Path) -> VerifierKey | None:
    def origin() -> str:
        try:
            return first_head(record).snapshot.origin
        except RecordProblem:
            # Of a record whose beginning cannot be read only its name is missing: it is wrong
            # anyway.
            return "unknown"

    return None if value is None else given_table(value, origin)


def _witness(args: argparse.Namespace) -> SeenCheckpoint | None:
    if (args.checkpoint is None) != (args.witness_key is None):
        what = "--checkpoint and --witness-key go together"
        raise UsageProblem("arguments", what, "both, or neither")
    if args.checkpoint is None:
        return None
    key = given_witness(args.witness_key)
    try:
        return seen_by_witness(bytes_of("--checkpoint", args.checkpoint), key)
    except NoteProblem as problem:
        where = f"--checkpoint: {printable(args.checkpoint)}"
        raise UsageProblem(where, problem.what, "a note as the witness has made it") from None


# --- what is shown ----------------------------------------------------------------------------


@contextmanager
def _progress() -> Iterator[Callable[[VerifyProgress], None]]:
    """A bar on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("segments")

        def tell(step: VerifyProgress) -> None:
            found = f", {step.findings} findings" if step.findings else ""
            words = f"{step.records:,} records{found}"
            bar.update(task, total=step.of, completed=step.segments, description=words)

        yield tell


def words(
    report: VerifyReport, *, replay: bool = True, witness: SeenCheckpoint | None = None
) -> Iterator[str]:
    """What verifying came to, for people."""
    first, last = report.segments
    yield report.origin or "a record whose beginning cannot be read"
    yield (
        f"  {report.records:,} records in segments {first} to {last}, {report.size:,} bytes, "
        f"{counted(report.boots, 'boot')}"
    )
    yield f"  from {format_time(report.utc[0])} to {format_time(report.utc[1])}"
    yield f"  {report.checkpoints:,} checkpoints; signed up to record {report.signed:,}"
    if replay:
        yield f"  {report.again:,} decisions and refusals made again by the rules"
    if report.unread:
        why = "after something wrong" if replay else "--no-replay"
        yield f"  {report.unread:,} decisions and refusals were not made again: {why}"
    yield f"  {report.opened:,} hole cards opened as they were committed to"
    if report.witnessed:
        at = format_time(report.witnessed_at * 1_000_000)
        who = "" if witness is None else witness.who
        yield f"  the first {report.witnessed:,} records are those that {who} saw on {at}"
    for one in report.retired:
        yield f"retired: {one}"
    for remark in report.remarks:
        yield f"remark: {remark}"
    for one in report.unchecked:
        yield f"not checked: {one}"
    yield from _key_words(report)
    yield from _findings(report)
    yield _VERDICTS[report.code]


def _key_words(report: VerifyReport) -> Iterator[str]:
    if not report.proven_key:
        yield (
            "THE TABLE'S KEY IS NOT PROVEN: it is the record's own word. Hold it against the "
            "table's papers, or give --table-key"
        )
    if report.table_key:
        yield f"  {report.table_key}"


def _findings(report: VerifyReport) -> Iterator[str]:
    for found in report.findings[:_SHOWN]:
        yield f"wrong: {found}"
        if found is report.findings[0] and found.since:
            yield f"  until {format_time(found.since)} all was as it must be"
    rest = len(report.findings) - _SHOWN + report.more
    if rest > 0:
        yield f"wrong: {rest:,} more"


_VERDICTS: Final = {
    0: "RIGHT",
    INVALID: "WRONG",
    INCOMPLETE: "RIGHT AS FAR AS IT COULD BE CHECKED",
}
