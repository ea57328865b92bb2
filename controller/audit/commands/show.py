"""`holecard audit show` and `tail`: what stands in a record, as a timeline in words."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

from msgspec.structs import replace

from controller.audit.commands.common import Subparsers, path_of, rounds_of, say, text_of
from controller.audit.commands.index import add_index, caught_up
from controller.audit.errors import RecordProblem
from controller.audit.format.records import KINDS, OpenedData, Record
from controller.audit.index import (
    MAX_PAGE,
    RecordPage,
    RecordQuery,
    find,
    parse_amounts,
    parse_time,
)
from controller.audit.read.access_log import log_access
from controller.audit.read.follow import DurableRecords, Follower, check_end, to_its_end
from controller.audit.read.heads import first_head, gone_before
from controller.audit.read.lookup import (
    BootLookup,
    LocatedRecord,
    at,
    last_of,
    last_round,
    of_rounds,
    of_seqs,
)
from controller.audit.read.retirements import where_retired
from controller.audit.text import currency_of, format_clock, format_time, record_lines
from controller.errors import UsageProblem, printable
from controller.procedure.prompts import AmountFormat
from controller.rules.cards import parse_card

LOOKS: Final = """\
Each look is written beside the record, in RECORD.looks.jsonl, before anything is shown. Cards that
lie face down are not shown: nobody has them but surveillance, and a voided round's has
`holecard audit open`. Times are in UTC, with ~ where the machine said that its clock was not right.
"""
SHOW_EXAMPLES: Final = f"""\
examples:
  holecard audit show run/mega-1
  holecard audit show run/mega-1 --round 17
  holecard audit show run/mega-1 --seq 1200-1260 --json
  holecard audit show run/mega-1 --seat 3 --card TH
  holecard audit show run/mega-1 --dealer Ann --kind refusal
  holecard audit show run/mega-1 --problems --round 10-90
  holecard audit show run/mega-1 --from "2027-01-15 22:30" --to 2027-01-16T02:00:00
  holecard audit show run/mega-1 --amount 500- --from 2027-01-15 --seat 3
  holecard audit show run/mega-1 --amount 12.50 --kind decision

A day or a time is meant to its end: --to 2027-01-15 is up to midnight, all of it by UTC. Amounts
are written as the table's last boot writes them, with the sign of its currency or without; N- is N
and more, N-M both and what lies between. With --seat it is an amount of that seat.

Without anything the round at hand is shown. Whatever is looked for by time, amount, seat, card,
dealer, person, kind or problem is found with an index, which is made where there is none. --json
prints a line of JSON for each record: its place, and the record as it was written.

{LOOKS}
Exit codes: 0 shown; 1 there is nothing of it, or the record is damaged: what is good of it is
shown; 2 wrong arguments, an index that cannot be used, or a place without a record; 74 the output
or an index cannot be written; 130 interrupted; 141 the reader of the output has gone.
"""
TAIL_EXAMPLES: Final = f"""\
examples:
  holecard audit tail run/mega-1
  holecard audit tail run/mega-1 --lines 50
  holecard audit tail run/mega-1 --follow --json

At a running table the last records may be on their way to the disk still, and be gone after a loss
of power. --follow shows a record only once one behind it says that it was on the disk: within a
second at a running table. What no record stands behind is not shown until one does; without
--follow it is.

{LOOKS}
Exit codes: 0 shown; 1 the record is damaged: what is good of it is shown; 2 wrong arguments, or a
place without a record; 74 the output cannot be written; 130 interrupted, which is how --follow
ends; 141 the reader of the output has gone.
"""
_SEQS: Final = "N, or N-M with M not less than N"
_LIMIT: Final = 100
_MOST: Final = 100_000
_EVERY: Final = 0.25
"""Seconds between looks at a record that grows."""
_BY: Final = "who looks (default: the user's name)"


def add_show(subparsers: Subparsers) -> None:
    parser = _parser(subparsers, "show", "show a round, or records, in words", SHOW_EXAMPLES)
    parser.add_argument("--round", metavar="N", help="a round, or rounds N-M")
    parser.add_argument("--seq", metavar="N", help="a record by its number, or records N-M")
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seat", metavar="N", type=int, help="what concerns this seat")
    parser.add_argument("--card", metavar="CARD", help="a card that lay face up, such as TH")
    parser.add_argument("--dealer", metavar="NAME", help="while this dealer dealt")
    parser.add_argument("--person", metavar="NAME", help="what this person did, or stood by")
    parser.add_argument("--from", dest="since", metavar="TIME", help="from then on, by UTC")
    parser.add_argument("--to", dest="until", metavar="TIME", help="up to then, by UTC")
    parser.add_argument("--amount", metavar="N", help="an amount in it, or amounts N-M, or N-")
    parser.add_argument("--irregularity", metavar="NAME", help="such as misdeal or shoe_ran_out")
    parser.add_argument("--problems", action="store_true", help="what went wrong or was refused")
    parser.add_argument(
        "--limit", metavar="N", type=int, default=_LIMIT, help=f"records found (default: {_LIMIT})"
    )
    add_index(parser)
    parser.set_defaults(func=show)


def add_tail(subparsers: Subparsers) -> None:
    parser = _parser(subparsers, "tail", "show the last records, in words", TAIL_EXAMPLES)
    parser.add_argument(
        "--lines", metavar="N", type=int, default=10, help="records from the end (default: 10)"
    )
    parser.add_argument("--follow", action="store_true", help="go on as the record grows")
    parser.set_defaults(func=tail)


def _parser(subparsers: Subparsers, name: str, does: str, examples: str) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("record", metavar="RECORD", help="the record's directory, or a copy of it")
    parser.add_argument("--by", metavar="NAME", help=_BY)
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each record")
    return parser


# --- show -------------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    if not 1 <= args.limit <= _MOST:
        raise UsageProblem("--limit", f"{args.limit} records", f"1 to {_MOST}")
    wanted = _wanted(record, args)
    if args.seq is not None and (wanted is not None or args.round is not None):
        raise UsageProblem("--seq", "goes with nothing else", "--seq alone")
    seqs = None if args.seq is None else _seqs(args.seq)
    rounds = None if args.round is None else rounds_of(args.round)
    first_head(record)  # nobody has looked at what is no record
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
        _say_what_is_gone(record, count)
    return 0 if count else 1


def _say_what_is_gone(record: Path, count: int) -> None:
    before = gone_before(record)
    if before:
        say(before if count else f"{before}, and there is nothing of it in the others")
    elif not count:
        say("there is nothing of it in the record")


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
    """How the last boot writes amounts. NoRecord, Damaged."""
    (last,) = last_of(record, 1)
    return currency_of(last.opened)


def _wanted(record: Path, args: argparse.Namespace) -> RecordQuery | None:
    """What is looked for beside rounds; None without anything."""
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
    """What is looked at, for the file of looks."""
    names = ("round", "seq", "kind", "seat", "card", "dealer", "person", "irregularity")
    given = [f"{name} {getattr(args, name)}" for name in names if getattr(args, name) is not None]
    more = {"from": args.since, "to": args.until, "amount": args.amount}
    given += [f"{name} {text}" for name, text in more.items() if text is not None]
    if args.problems:
        given.append("problems")
    return ", ".join(given) or "the round at hand"


def _found(record: Path, wanted: RecordQuery, args: argparse.Namespace) -> Iterator[LocatedRecord]:
    """What the index finds, read from the segments."""
    with caught_up(record, args.index) as index:
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
    say(f"there are more; --limit {args.limit} was asked for")


def _print_all(found: Iterable[LocatedRecord], args: argparse.Namespace) -> int:
    printer = _Printer(json=args.json)
    for told in found:
        printer(told)
    return printer.count


# --- tail -------------------------------------------------------------------------------------


def tail(args: argparse.Namespace) -> int:
    record = path_of("RECORD", args.record)
    if not 0 <= args.lines <= _MOST:
        raise UsageProblem("--lines", f"{args.lines} records", f"0 to {_MOST}")
    first_head(record)
    asked = f"the last {args.lines}{', and all that follow' if args.follow else ''}"
    log_access(record, "tail", asked, who=text_of("--by", args.by))
    printer = _Printer(json=args.json)
    if args.follow:
        _follow(record, args.lines, printer)
    for told in last_of(record, args.lines) if args.lines else ():
        printer(told)
    check_end(record)
    return 0


def _follow(record: Path, count: int, printer: _Printer) -> NoReturn:
    """Ends with an interrupt, or because the record is damaged: RecordProblem."""
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
        time.sleep(_EVERY)


# --- how a record is shown --------------------------------------------------------------------


class _Printer:
    """Prints records one after the other; a line with the day where another one begins."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._day = ""
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
        for line in self._lines(told.record):
            _print_text(line)

    def _lines(self, record: Record) -> Iterator[str]:
        day = format_time(record.utc)[:10]
        if day != self._day:
            self._day = day
            yield f"{day} UTC, gaming day {printable(record.day)}, table {printable(record.table)}"
        sure = " " if record.clock == "synced" else "~"
        who = printable(record.by.name)
        seat = f" (seat {record.by.seat})" if record.by.seat else ""
        head = f"{format_clock(record.utc)}{sure} {record.seq:>7}  round {record.round:<4} "
        first, *rest = record_lines(record, self._money)
        yield f"{head} {who}{seat}: {first}"
        indent = " " * len(head)
        yield from (f"{indent} {line}" for line in rest)


def _print_text(text: str) -> None:
    """Prints what the terminal's encoding has, and the rest by its number; nowhere where stdout is
    closed."""
    if sys.stdout is None:
        return
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
