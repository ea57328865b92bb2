"""`holecard audit rebuild-index` and `sql`; an index that is up to date, for other commands."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.audit.commands.common import index_progress
from controller.audit.errors import IndexBusy, IndexFileProblem
from controller.audit.index import Index, SqlAnswer, run_sql
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import to_its_end
from controller.audit.read.lookup import first_head
from controller.commands import path_of, print_json, say, show, text_of, unicode_of
from controller.errors import printable

_MAX_CELL: Final = 60
"""Characters of a column in the text output."""


def rebuild(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    with index_progress() as on_progress, Index.rebuild(record, _file(args.index)) as index:
        count = index.catch_up(on_progress)
        seq, file = index.position.seq, printable(index.file)
    with to_its_end(record):
        answer = {"index": file, "records": count, "seq": seq}
        show(args, answer, f"{file}: {count:,} records, up to {seq:,}")
    return 0


def sql(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    statement = unicode_of("SELECT", args.statement)
    first_head(record)
    log_access(record, "sql", statement, who=text_of("--by", args.by))
    with to_its_end(record):
        with updated_index(record, args.index) as index:
            file = index.file
        answer = run_sql(file, statement, rows=args.rows, seconds=args.seconds)
        if args.json:
            rows = [[_json_value(value) for value in row] for row in answer.rows]
            print_json({"columns": answer.columns, "rows": rows, "more": answer.more})
        else:
            for line in _table(answer):
                print(line)
        if answer.more:
            say(f"there are more rows; --rows {args.rows} were asked for")
    return 0


@contextmanager
def updated_index(record: Path, index: str | None) -> Iterator[Index]:
    """The index with all records; built, or rebuilt, if it must be.

    If it cannot be written, it is used as it is. Raises IndexProblem, RecordDamaged and NoRecord.
    """
    with (
        index_progress() as on_progress,
        Index.open_or_rebuild(record, _file(index), say=say) as ready,
    ):
        try:
            ready.catch_up(on_progress)
        except (IndexFileProblem, IndexBusy) as problem:
            if not ready.position.seq:
                raise
            say(f"the index only goes up to record {ready.position.seq}: {problem.what}")
        yield ready


def _file(index: str | None) -> Path | None:
    return None if index is None else path_of("--index", index)


def _table(answer: SqlAnswer) -> Iterator[str]:
    """Aligned columns; long cells are truncated."""
    rows = [answer.columns, *([_cell(value) for value in row] for row in answer.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _cell(value: object) -> str:
    text = "" if value is None else printable(value)
    return text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 3]}..."


def _json_value(value: object) -> object:
    """JSON has neither bytes nor infinite numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value
