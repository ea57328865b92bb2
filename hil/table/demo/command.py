"""Runs `holecard demo`: rounds at a whole table, dealt by the daemon with simulated devices."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from rich import box
from rich.table import Table

from controller.audit.text import verify_report_lines
from controller.audit.verify import VerifyReport
from controller.commands import print_json
from controller.errors import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_NO, printable
from hil.table.demo.cli import GAMES, ROUNDS
from hil.table.demo.demo import Demo, Plan
from hil.table.demo.terminal import Tally, TerminalScreen, screen_for
from hil.table.robots import ApiProblem, RobotStuck, Unreachable
from hil.table.setup import DidNotServe

FAULTS: Final = (ApiProblem, DidNotServe, RobotStuck, TimeoutError, Unreachable)
_START_CODES: Final = (1, 2)
"""Exit codes of a daemon that did not start: a damaged record, or an invalid configuration. The
demo exits with the same code."""


def code_of(problem: BaseException) -> int:
    """Returns the exit code for an error."""
    if isinstance(problem, DidNotServe) and problem.code in _START_CODES:
        return problem.code
    return EXIT_BROKEN


def words_of(problem: BaseException) -> str:
    """Returns the error's text."""
    said = str(problem) or "nothing came of it in time"
    return f"the table has failed: {type(problem).__name__}: {said}"


def show(args: argparse.Namespace) -> int:
    """Run the demo and print its summary, also after an interrupt."""
    games = GAMES if args.game == "all" else (args.game,)
    stream = sys.stderr if args.json else sys.stdout
    screen = screen_for(stream, plain=args.plain, quiet=args.json)
    speed = args.speed if screen.watched else 0.0
    lives = screen.watched
    rounds = ROUNDS if args.rounds is None and not lives else args.rounds
    page = 0 if args.page_port is None and lives else args.page_port
    plan = Plan(games, rounds, args.seats, args.seed, speed, page)
    with _folder(args.dir) as folder:
        demo = Demo(plan, screen, folder)
        try:
            interrupted = _run(demo)
        except FAULTS as problem:
            screen.stop()
            print(f"holecard: demo: {words_of(problem)}", file=sys.stderr)
            return code_of(problem)
        finally:
            screen.stop()  # shows the terminal's cursor again
        report = demo.verify() if demo.tallies else None
        if args.json:
            print_json(_as_json(demo.tallies, report, interrupted=interrupted))
        else:
            sum_up(screen, summary_table(demo.tallies, interrupted=interrupted))
            for line in _words(report):
                screen.line(line)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_NO if report is None or report.code else 0


def _run(demo: Demo) -> bool:
    """Run the demo. Returns whether it was interrupted. Raises UsageProblem and FAULTS."""

    async def whole() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await demo.run()

    try:
        asyncio.run(whole())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return True
    return False


@contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    if given is not None:
        yield Path(given)
        return
    with TemporaryDirectory(prefix="holecard-demo-") as made:
        yield Path(made)


# --- the summary --------------------------------------------------------------------------------


def summary_table(tallies: list[Tally], *, interrupted: bool) -> Table:
    """Returns a table of wagers, payments and the difference; tokes in other columns."""
    table = Table(box=box.SIMPLE, title_justify="left")
    table.title = "Interrupted: the rounds so far" if interrupted else "All rounds"
    headings = ("rounds", "an hour", "wagers", "paid back", "kept", "tokes", "to dealers")
    for heading in ("", *headings):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for tally in tallies:
        amounts = (
            tally.wagers,
            tally.paid,
            tally.wagers - tally.paid,
            tally.tokes,
            tally.for_dealers,
        )
        written = map(tally.money.amount, amounts)
        table.add_row(tally.table, str(tally.rounds), str(tally.an_hour), *written)
    return table


def sum_up(screen: TerminalScreen, table: Table) -> None:
    if screen.fits(table):
        screen.table(table)
        return
    for line in _as_lines(table):
        screen.line(line)


def _as_lines(table: Table) -> Iterator[str]:
    """Yields one figure a line, for terminals that are too narrow for the table."""
    heads, *columns = table.columns
    yield ""
    yield str(table.title)
    for at, head in enumerate(heads.cells):
        yield f"{head}"
        yield from (f"  {column.header}: {list(column.cells)[at]}" for column in columns)


def _words(report: VerifyReport | None) -> Iterator[str]:
    if report is not None:
        yield "holecard audit verify:"
        yield from (f"  {printable(line)}" for line in verify_report_lines(report))


def _as_json(tallies: list[Tally], report: VerifyReport | None, *, interrupted: bool) -> object:
    return {
        "interrupted": interrupted,
        "games": [msgspec.to_builtins(one) | {"rounds_an_hour": one.an_hour} for one in tallies],
        "verify": None if report is None else {**msgspec.to_builtins(report), "exit": report.code},
    }
