"""`holecard audit verify`: verifies a whole record."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.commands.common import bytes_of, table_key_of, witness_key_of
from controller.audit.commands.release import (
    ReleaseFindings,
    compared_with_releases,
    releases_of,
)
from controller.audit.errors import RecordProblem
from controller.audit.format.notes import NoteProblem, VerifierKey
from controller.audit.read.lookup import first_head
from controller.audit.text import VERDICTS, verify_report_lines
from controller.audit.verify import (
    INCOMPLETE,
    INVALID,
    VALID,
    InvalidWitnessNote,
    VerifyProgress,
    VerifyReport,
    WitnessedCheckpoint,
    seen_by_witness,
    verify,
)
from controller.commands import path_of, print_json
from controller.errors import UsageProblem, printable

_FEW: Final = 4
"""Segments that one process reads sooner than others can be started."""


def run(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    witness = _witness(args)
    table_key = _table_key(args.table_key, record)
    releases = releases_of(args)
    with _progress() as on_progress:
        report = verify(
            record,
            replay=not args.no_replay,
            table_key=table_key,
            witness=witness,
            jobs=args.jobs or _processors(record),
            on_progress=on_progress,
        )
    software = compared_with_releases(record, releases) if releases.files else ReleaseFindings()
    code = _code(report, software)
    if args.json:
        found = {"release": software._asdict()} if releases.files else {}
        print_json({**msgspec.to_builtins(report), **found, "exit": code})
    else:
        seen = None if isinstance(witness, InvalidWitnessNote) else witness
        *lines, _ = verify_report_lines(report, replay=not args.no_replay, witness=seen)
        for line in (*lines, *software.shown(), VERDICTS[code]):
            print(printable(line))
    return code


def _code(report: VerifyReport, software: ReleaseFindings) -> int:
    if software.wrong:
        return INVALID
    return INCOMPLETE if report.code == VALID and software.unchecked else report.code


# --- arguments --------------------------------------------------------------------------------


def _processors(record: Path) -> int:
    few = len(list((record / "segments").glob("0*.seg"))) <= _FEW
    return 1 if few else len(os.sched_getaffinity(0))


def _table_key(value: str | None, record: Path) -> VerifierKey | None:
    def origin() -> str:
        try:
            return first_head(record).snapshot.origin
        except RecordProblem:
            # Verification reports that its beginning cannot be read; here only its name is missing.
            return "unknown"

    return None if value is None else table_key_of(value, origin)


def _witness(args: argparse.Namespace) -> WitnessedCheckpoint | InvalidWitnessNote | None:
    """The checkpoint that the witness has countersigned. A note that the witness has not signed is
    a finding of the verification, not a wrong argument."""
    if (args.checkpoint is None) != (args.witness_key is None):
        raise UsageProblem(
            "arguments", "--checkpoint and --witness-key go together", "both, or neither"
        )
    if args.checkpoint is None:
        return None
    key = witness_key_of(args.witness_key)
    note = bytes_of("--checkpoint", args.checkpoint)
    try:
        return seen_by_witness(note, key)
    except NoteProblem as problem:
        return InvalidWitnessNote(f"--checkpoint {printable(args.checkpoint)}: {problem.what}")


# --- progress ---------------------------------------------------------------------------------


@contextmanager
def _progress() -> Iterator[Callable[[VerifyProgress], None]]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("segments")

        def show(step: VerifyProgress) -> None:
            found = f", {step.findings} findings" if step.findings else ""
            words = f"{step.records:,} records{found}"
            bar.update(task, total=step.of, completed=step.segments, description=words)

        yield show
