"""`holecard audit show`, `tail`, `sql` and `rebuild-index`: a record as text or rows."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from msgspec.structs import replace

from controller.audit.commands.common import index_progress, rounds_of
from controller.audit.errors import IndexBusy, IndexFileProblem, RecordProblem
from controller.audit.format.records import OpenedData, Record, Snapshot, table_of
from controller.audit.index import (
    MAX_PAGE,
    Index,
    RecordPage,
    RecordQuery,
    SqlAnswer,
    find,
    parse_amounts,
    parse_time,
    run_sql,
)
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import DurableRecords, Follower, check_end, to_its_end
from controller.audit.read.lookup import (
    BootLookup,
    LocatedRecord,
    at,
    first_head,
    gone_before,
    last_of,
    last_round,
    of_rounds,
    of_seqs,
)
from controller.audit.read.retirements import where_retired
from controller.audit.text import currency_of, format_clock, format_day, record_text
from controller.commands import path_of, print_json, say, show, text_of, unicode_of
from controller.errors import EXIT_NO, UsageProblem, printable
from controller.procedure.prompts import AmountFormat
from controller.rules.cards import parse_card

_MAX_CELL: Final = 60
"""Characters of a column in the text output."""


def rebuild_index(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    with index_progress() as on_progress, Index.rebuild(record, _file(args.index)) as index:
        count = index.catch_up(on_progress)
        seq, file = index.position.seq, printable(index.file)
    with to_its_end(record):
        show(
            args,
            {"index": file, "records": count, "seq": seq},
            f"{file}: {count:,} records, up to {seq:,}",
        )
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
            print_json(
                {
                    "columns": answer.columns,
                    "rows": [[_json_value(value) for value in row] for row in answer.rows],
                    "more": answer.more,
                }
            )
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


_SEQS: Final = "N, or N-M with M not less than N"
_FOLLOW_INTERVAL: Final = 0.25
"""Seconds between reads of a record that grows."""


# --- show -------------------------------------------------------------------------------------


def show_records(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    wanted = _wanted(record, args)
    if args.seq is not None and (wanted is not None or args.round is not None):
        raise UsageProblem("--seq", "cannot be combined with other filters", "--seq alone")
    seqs = None if args.seq is None else _seqs(args.seq)
    rounds = None if args.round is None else rounds_of(args.round)
    first_head(record)  # fails before the access is logged if there is no record
    log_access(record, "show", _asked(args), who=text_of("--by", args.by))
    if wanted is not None:
        found = _found(record, wanted, args)
    elif seqs is not None:
        found = of_seqs(record, *seqs)
    else:
        now = last_round(record)
        found = of_rounds(record, *(rounds or (now, now + 1)))
    with to_its_end(record):
        count = _print_all(found, args)
    retired = where_retired(record, rounds=rounds or (0, 0), seqs=seqs or (0, 0))
    if retired:
        say(retired)
    else:
        _report_missing(record, count)
    return 0 if count else EXIT_NO


def _report_missing(record: Path, count: int) -> None:
    before = gone_before(record)
    if before:
        say(before if count else f"{before}, and nothing was found in the others")
    elif not count:
        say("nothing was found in the record")


def _seqs(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    pair = (first, last or first)
    if not all(one.isascii() and one.isdigit() and len(one) < 19 for one in pair):
        raise UsageProblem("--seq", f"{text!a} is no record", _SEQS)
    low, high = map(int, pair)
    if not 1 <= low <= high:
        raise UsageProblem("--seq", f"{text!a} is no record", _SEQS)
    return low, high


def _times(args: argparse.Namespace) -> tuple[int | None, int | None]:
    since = None if args.since is None else parse_time("--from", args.since)
    until = None if args.until is None else parse_time("--to", args.until, end=True)
    if since is not None and until is not None and until < since:
        raise UsageProblem("--to", f"{args.until!a} is before --from", "a later time")
    return since, until


def _money(record: Path) -> AmountFormat:
    """How the last boot writes amounts. Raises NoRecord and RecordDamaged."""
    (last,) = last_of(record, 1)
    return currency_of(last.opened)


def _wanted(record: Path, args: argparse.Namespace) -> RecordQuery | None:
    """The filters other than rounds; None without any."""
    card = None if args.card is None else parse_card(args.card, "--card")
    for name in ("dealer", "person", "irregularity"):
        text_of(f"--{name}", getattr(args, name))
    filters = {name: getattr(args, name) for name in ("seat", "dealer", "kind", "person")}
    since, until = _times(args)
    least, most = (None, None)
    if args.amount is not None:
        least, most = parse_amounts("--amount", args.amount, _money(record))
    wanted = RecordQuery(
        since=since,
        until=until,
        card=card,
        least=least,
        most=most,
        irregularity=args.irregularity,
        problem=args.problems,
        **filters,
    )
    if wanted == RecordQuery():
        return None
    return wanted if args.round is None else replace(wanted, rounds=rounds_of(args.round))


def _asked(args: argparse.Namespace) -> str:
    """The filters as text, for the access log."""
    names = ("round", "seq", "kind", "seat", "card", "dealer", "person", "irregularity")
    given = [f"{name} {getattr(args, name)}" for name in names if getattr(args, name) is not None]
    more = {"from": args.since, "to": args.until, "amount": args.amount}
    given += [f"{name} {text}" for name, text in more.items() if text is not None]
    if args.problems:
        given.append("problems")
    return ", ".join(given) or "the round at hand"


def _found(record: Path, wanted: RecordQuery, args: argparse.Namespace) -> Iterator[LocatedRecord]:
    """Records that the index finds, read from the segments."""
    with updated_index(record, args.index) as index:
        boots = BootLookup(record)
        left, after = args.limit, 0
        while left:
            page: RecordPage = find(index.db, wanted, after, min(left, MAX_PAGE))
            for row in page.rows:
                frame, found = at(record, row.place)
                yield LocatedRecord(row.place, frame.data, found, boots.opened(row.place))
            left -= len(page.rows)
            if page.next is None:
                return
            after = page.next
    say(f"there are more records; --limit {args.limit} was asked for")


def _print_all(found: Iterable[LocatedRecord], args: argparse.Namespace) -> int:
    printer = _Printer(json=args.json)
    for told in found:
        printer(told)
    return printer.count


# --- tail -------------------------------------------------------------------------------------


def tail(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    first_head(record)
    log_access(
        record,
        "tail",
        f"the last {args.lines}{', and all that follow' if args.follow else ''}",
        who=text_of("--by", args.by),
    )
    printer = _Printer(json=args.json)
    if args.follow:
        _follow(record, args.lines, printer)
    for told in last_of(record, args.lines) if args.lines else ():
        printer(told)
    check_end(record)
    return 0


def _follow(record: Path, count: int, printer: _Printer) -> NoReturn:
    """Print records until interrupted. Raises RecordProblem if the record is damaged."""
    following = Follower(record)
    last = last_of(record, count) if count else []
    durable = DurableRecords(
        following, [one for one in last if one.place.seq <= following.where.seq]
    )
    while True:
        for told in durable.more():
            printer(told)
        if sys.stdout is not None:
            sys.stdout.flush()
        try:
            following.check_end()
        except RecordProblem:
            for told in durable.rest():
                printer(told)
            raise
        time.sleep(_FOLLOW_INTERVAL)


# --- output -------------------------------------------------------------------------------------


def _name_of_table(told: LocatedRecord) -> str:
    """The table's name, from the first record that has the origin."""
    if told.opened is not None:
        return table_of(told.opened.origin)
    if told.record.kind == "snapshot":
        return table_of(msgspec.json.decode(told.record.data, type=Snapshot).origin)
    return told.record.table


class _Printer:
    """Prints records, and a line with the date whenever it changes."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._day = self._table = ""
        self._boot: OpenedData | None = None
        self._money: AmountFormat = currency_of(None)
        self.count = 0

    def __call__(self, told: LocatedRecord) -> None:
        self.count += 1
        if self._json:
            place = told.place
            head = f'{{"segment":{place.segment},"offset":{place.offset},"record":'
            _print_text(f"{head}{told.data.decode(errors='replace')}}}")
            return
        if told.opened is not self._boot:
            self._boot, self._money = told.opened, currency_of(told.opened)
        self._table = self._table or _name_of_table(told)
        for line in self._lines(told.record):
            _print_text(line)

    def _lines(self, record: Record) -> Iterator[str]:
        day = format_day(record.utc)
        if day != self._day:
            self._day = day
            yield f"{day} UTC, gaming day {printable(record.day)}, table {printable(self._table)}"
        sure = " " if record.clock == "synced" else "~"
        who = printable(record.by.name)
        seat = f" (seat {record.by.seat})" if record.by.seat else ""
        head = f"{format_clock(record.utc)}{sure} {record.seq:>7}  round {record.round:<4} "
        text = record_text(record, self._money)
        refused = f" - refused: {text.refused}" if text.refused else ""
        yield f"{head} {who}{seat}: {text.what}{refused}"
        indent = " " * len(head)
        yield from (f"{indent}   {line}" for line in text.facts)
        yield from (f"{indent}   > {line}" for line in text.prompts)


def _print_text(text: str) -> None:
    """Print with escapes for characters that the terminal's encoding lacks."""
    if sys.stdout is None:
        return
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
