"""`holecard audit rebuild-index` and `sql`: the index of a record, by which it is searched."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.audit.commands.common import (
    Subparsers,
    command,
    path_of,
    print_json,
    say,
    text_of,
    words_of,
)
from controller.audit.errors import IndexBusy, IndexFileProblem
from controller.audit.index import NAME, Index, IndexProgress, SqlAnswer, run_sql
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.heads import first_head
from controller.errors import printable

REBUILD_EXAMPLES: Final = """\
examples:
  holecard audit rebuild-index run/mega-1
  holecard audit rebuild-index copy --index /var/tmp/mega-1.db

The index is no part of the record: it is made from the segments, and can be made anew at any time.
The record may be in use meanwhile.
"""
SQL_EXAMPLES: Final = """\
examples:
  holecard audit sql run/mega-1 "SELECT dealer, count(*) FROM rounds GROUP BY dealer"
  holecard audit sql run/mega-1 "SELECT * FROM problems" --rows 50 --json

One statement that only reads, of these views: records, cards, amounts, bets, irregularities,
problems, people, seats, shifts, rounds, segments. The index is caught up first. Each question is
written beside the record, in RECORD.looks.jsonl.
"""
_MOST_SHOWN: Final = 60
"""Characters of a column in words."""


def add_rebuild(subparsers: Subparsers) -> None:
    does = "make the index of a record anew"
    parser = command(subparsers, "rebuild-index", does, rebuild, REBUILD_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    add_index(parser)


def add_sql(subparsers: Subparsers) -> None:
    does = "ask the index of a record in SQL, reading only"
    parser = command(subparsers, "sql", does, sql, SQL_EXAMPLES)
    parser.add_argument("record", metavar="RECORD", help="the record's directory")
    parser.add_argument("statement", metavar="SELECT", help="the question")
    parser.add_argument(
        "--rows", metavar="N", type=int, default=1_000, help="rows at most (default: 1000)"
    )
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=30.0, help="time it may take (default: 30)"
    )
    parser.add_argument("--by", metavar="NAME", help="who asks (default: the user's name)")
    add_index(parser)


def add_index(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index", metavar="FILE", help=f"the index (default: {NAME} in the record's directory)"
    )


# --- the commands -----------------------------------------------------------------------------


def rebuild(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    with progress() as tell, Index.anew(record, _file(args.index)) as index:
        count = index.catch_up(tell)
        seq, file = index.goes.seq, index.file
    with to_its_end(record):
        if args.json:
            print_json({"index": printable(file), "records": count, "seq": seq})
        else:
            print(f"{printable(file)}: {count:,} records, up to {seq:,}")
    return 0


def sql(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    statement = words_of("SELECT", args.statement)
    first_head(record)
    log_access(record, "sql", statement, who=text_of("--by", args.by))
    with to_its_end(record):
        with caught_up(record, args.index) as index:
            file = index.file
        answer = run_sql(file, statement, rows=args.rows, seconds=args.seconds)
        if args.json:
            rows = [[_plain(value) for value in row] for row in answer.rows]
            print_json({"columns": answer.columns, "rows": rows, "more": answer.more})
        else:
            for line in _table(answer):
                print(line)
        if answer.more:
            say(f"there are more rows; --rows {args.rows} were asked for")
    return 0


# --- the index --------------------------------------------------------------------------------


@contextmanager
def caught_up(record: Path, index: str | None) -> Iterator[Index]:
    """The index with all that the record has; made, or made anew, where it must be.

    IndexProblem, Damaged, NoRecord. Where it is but cannot be written, as far as it goes."""
    with progress() as tell, Index.ready(record, _file(index), say=say) as ready:
        try:
            ready.catch_up(tell)
        except (IndexFileProblem, IndexBusy) as problem:
            if not ready.goes.seq:
                raise
            say(f"the index goes up to record {ready.goes.seq} only: {problem.what}")
        yield ready


def _file(index: str | None) -> Path | None:
    return None if index is None else path_of("--index", index)


@contextmanager
def progress() -> Iterator[Callable[[IndexProgress], None] | None]:
    """How far it has come, on stderr, where that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return

    def tell(step: IndexProgress) -> None:
        words = f"index: segment {step.segment} of {step.segments}, {step.records:,} records"
        print(f"\r{words} ", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _table(answer: SqlAnswer) -> Iterator[str]:
    """Columns one under the other, cut where they are long."""
    rows = [answer.columns, *([_cell(value) for value in row] for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _cell(value: object) -> str:
    text = "" if value is None else printable(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def _plain(value: object) -> object:
    """As JSON has it, which knows no bytes and no number without end."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value
