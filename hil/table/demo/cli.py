"""`holecard demo`: watch rounds at a whole table, dealt by the daemon with simulated devices."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import msgspec

from controller.errors import printable
from hil.table.robots import ApiProblem, RobotStuck, Unreachable
from hil.table.setup import DidNotServe

if TYPE_CHECKING:
    from rich.table import Table

    from controller.audit.verify import VerifyReport
    from hil.table.demo.demo import Demo
    from hil.table.demo.spectator import Tally
    from hil.table.demo.terminal import TerminalScreen


FAULTS: Final = (ApiProblem, DidNotServe, RobotStuck, TimeoutError, Unreachable)


_BROKEN: Final = 70
_ITS_OWN: Final = (1, 2)
"""Codes of a daemon that does not begin: the record is damaged, or something of the house is not in
order. They are the same for whoever starts it."""


def code_of(problem: BaseException) -> int:
    """What a command ends with."""
    if isinstance(problem, DidNotServe) and problem.code in _ITS_OWN:
        return problem.code
    return _BROKEN


def words_of(problem: BaseException) -> str:
    """What has failed, in a line or more."""
    said = str(problem) or "nothing came of it in time"
    return f"the table has failed: {type(problem).__name__}: {said}"


GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
MOST_ROUNDS: Final = 1000
ROUNDS: Final = 2
_ANY: Final = 0
"""A free port."""
EXIT_WRONG: Final = 1
EXIT_INTERRUPTED: Final = 130
EXAMPLES: Final = """\
examples:
  holecard demo
  holecard demo --game mega --rounds 5 --seats 7
  holecard demo --game sf21x --seed 4 --speed fast --plain
  holecard demo --game classic --rounds 100 --speed fast --dir run/demo

On a terminal it goes on until Ctrl-C, and tells where its pages are: the dealer's console, the
review, and the bench page, where people see the devices from outside, take a seat, pull cards,
press buttons and switch faults on. Badges and PINs are told too. Whoever signs in at the console
and relieves the dealer deals; the robot watches, until it is told on the bench page to deal again.

A shoe, a shuffler and seven stations are simulated behind real ports; `holecard serve` deals with
them as with any others. A robot dealer sees the dealer's prompts alone, pulls cards out of the shoe
and enters what a dealer enters; robot players press the buttons that light up. The cards come of
--seed. At the end the record is verified. With --dir everything stays there: the record, the keys,
the daemon's own words in daemon.log; and the next demo goes on with it.

Exit codes: 0 shown, and the record is right; 1 the record is wrong, or so damaged that no table is
served with it; 2 wrong arguments, or a folder that cannot be used; 70 the table has failed;
130 interrupted, with the summary so far.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = subparsers.add_parser(
        "demo",
        help="watch rounds at a whole table",
        description="Deals rounds of the games at a whole table with simulated devices.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    demo.add_argument(
        "--game", choices=(*GAMES, "all"), default="all", help="which game (default: all)"
    )
    demo.add_argument(
        "--rounds",
        type=_whole(1, MOST_ROUNDS),
        metavar="N",
        help=f"rounds of each game, 1 to {MOST_ROUNDS} (default: on a terminal until Ctrl-C, else "
        f"{ROUNDS})",
    )
    demo.add_argument(
        "--seats",
        type=_whole(1, 7),
        default=4,
        metavar="N",
        help="players, 1 to 7 (default: 4)",
    )
    demo.add_argument(
        "--seed",
        type=_whole(0, 2**63 - 1),
        default=29,
        metavar="S",
        help="the cards and the players' whims (default: 29)",
    )
    demo.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="X",
        help="times the usual speed, or fast: no waiting; off a terminal nothing waits",
    )
    demo.add_argument(
        "--page-port",
        type=_whole(0, 65535),
        metavar="PORT",
        help="of the bench page on 127.0.0.1; 0: any free one (default: on a terminal 0, else no "
        "page)",
    )
    demo.add_argument("--dir", metavar="DIR", help="keep everything in this folder")
    form = demo.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the summary alone, as JSON")
    form.add_argument(
        "--plain", action="store_true", help="neither colours nor a moving picture on a terminal"
    )
    demo.set_defaults(func=show)


def _whole(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: a whole number from `low` to `high`."""

    def read(text: str) -> int:
        allowed = f"{low} to {high}"
        if not text.isascii() or not text.isdigit() or not low <= int(text[:20]) <= high:
            raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; allowed: {allowed}")
        return int(text)

    return read


def _speed(text: str) -> float:
    """How many times as fast; 0 stands for no waiting at all."""
    if text == "fast":
        return 0.0
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.1 <= speed <= 1000:
        allowed = "allowed: 0.1 to 1000, or fast"
        raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; {allowed}")
    return speed


# --- the demo -----------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> int:
    """Play and show; an interrupt ends it with the summary so far."""
    from hil.table.demo.cli import FAULTS, code_of, words_of
    from hil.table.demo.demo import Demo, Plan
    from hil.table.demo.terminal import screen_for

    games = GAMES if args.game == "all" else (args.game,)
    stream = sys.stderr if args.json else sys.stdout
    screen = screen_for(stream, plain=args.plain, quiet=args.json)
    speed = args.speed if screen.watched else 0.0
    lives = screen.watched
    rounds = ROUNDS if args.rounds is None and not lives else args.rounds
    page = _ANY if args.page_port is None and lives else args.page_port
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
            screen.stop()  # a terminal gets its cursor back whatever happened
        report = demo.verify() if demo.tallies else None
        if args.json:
            print(json.dumps(_as_json(demo.tallies, report, interrupted=interrupted), indent=2))
        else:
            _sum_up(screen, _table(demo.tallies, interrupted=interrupted))
            for line in _words(report):
                screen.line(line)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_WRONG if report is None or report.code else 0


def _run(demo: Demo) -> bool:
    """Whether it was interrupted. UsageProblem, FAULTS."""

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


def _table(tallies: list[Tally], *, interrupted: bool) -> Table:
    """What was wagered, handed back and kept, and the tokes apart."""
    from rich import box
    from rich.table import Table

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


def _sum_up(screen: TerminalScreen, table: Table) -> None:
    if screen.fits(table):
        screen.table(table)
        return
    for line in _one_by_one(table):
        screen.line(line)


def _one_by_one(table: Table) -> Iterator[str]:
    """The same, a figure a line: where there is no room for columns, no money is cut off."""
    heads, *columns = table.columns
    yield ""
    yield str(table.title)
    for at, head in enumerate(heads.cells):
        yield f"{head}"
        yield from (f"  {column.header}: {list(column.cells)[at]}" for column in columns)


def _words(report: VerifyReport | None) -> Iterator[str]:
    from controller.audit.text import verify_report_lines

    if report is not None:
        yield "holecard audit verify:"
        yield from (f"  {printable(line)}" for line in verify_report_lines(report))


def _as_json(tallies: list[Tally], report: VerifyReport | None, *, interrupted: bool) -> object:
    return {
        "interrupted": interrupted,
        "games": [msgspec.to_builtins(one) | {"rounds_an_hour": one.an_hour} for one in tallies],
        "verify": None if report is None else {**msgspec.to_builtins(report), "exit": report.code},
    }
