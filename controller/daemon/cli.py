"""`holecard serve`: one table, in the foreground, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

import structlog
from msgspec.structs import replace

from controller import early_signals, terminal
from controller.config import TableConfig, load_table
from controller.daemon import exit_codes
from controller.daemon import logging as lines
from controller.daemon.serve import ReadyNotice, ServeCallbacks, serve
from controller.daemon.systemd import Notify
from controller.errors import UsageProblem, printable
from controller.table.loop import REAL_ENVIRONMENT, TableEnvironment
from controller.terminal import PromptCancelled
from drivers.logging import takes

STOP_WITHIN: Final = 40.0
"""Seconds from the first signal to the end. The record alone may take most of them."""
_LATE: Final = b"holecard: it did not end in time; the next start takes up where the record ends\n"
_AT_ONCE: Final = b"holecard: ended at once; the next start takes up where the record ends\n"

EXAMPLES: Final = f"""\
examples:
  holecard serve tables/blackjack-1.toml
  holecard serve tables/blackjack-1.toml --believe-clock --by Ann --and Bo

It runs in the foreground. Once the record is open, its devices are being looked for and the API
answers, it prints one line: ready: TABLE at SOCKET, http://127.0.0.1:PORT, screens
http://127.0.0.1:PORT/. Lines for engineers go to stderr, as JSON where that is no terminal. To a
service manager it says READY=1, WATCHDOG=1, STATUS=... and STOPPING=1; configs/deploy has a unit
for systemd, and INSTALL.md.

With [screens] in the table file its pages are served to browsers: the dealer's console at
http://127.0.0.1:PORT/, where anybody who opens it watches and the dealer signs in, and surveillance
under http://127.0.0.1:PORT/review/, by badge and PIN. That is on this machine only; elsewhere only
with `listen`, `certificate` and `key`.

SIGTERM or SIGINT ends it in good order: nobody begins anything any more, people are signed out,
lamps and locks are made safe, the record is closed. That takes {STOP_WITHIN:.0f} s at most. It is
the same while it starts; before anything has been opened, nothing is. A second signal ends it at
once. Either way the next start goes on where the record ends.

Where the machine's clock is more than a minute before the record's last entry, it does not start.
Set the clock. If the clock is right now, and was wrong before, two people say so, once, with
--believe-clock; that stands in the record.

Exit codes: 0 ended in good order; 1 the record is damaged, or is not as it must be; 2 the table
file, keys, people or the clock are not in order, a port or the record is taken, or it is the record
of another table; 70 a fault of ours; 74 the record cannot be written, or did not close in time;
130 ended at once, by a second signal.
"""

_log: Final = structlog.get_logger("daemon")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "serve",
        help="serve a table",
        description="Serves a table: its devices, its record, its people and its control API.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("config", metavar="CONFIG", help="the table's file")
    parser.add_argument(
        "--believe-clock",
        action="store_true",
        help="start although the record's last entry is later than the clock",
    )
    parser.add_argument("--by", metavar="NAME", help="who says that the clock is right")
    parser.add_argument("--and", dest="second", metavar="NAME", help="the second person")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    lines.to_stderr()
    config = load_table(args.config)
    try:
        world = _world(args)
    except PromptCancelled:
        raise UsageProblem("--by", "nobody says who they are", "--by NAME --and NAME") from None
    with Signals() as signals:  # before, nothing is open, and the first signal ends it (`early`)
        try:
            return asyncio.run(_in_group(config, signals, world))
        except ExceptionGroup as group:
            problem = exit_codes.known(group)
            if problem is not None:
                raise problem from None
            for one in exit_codes.leaves(group):
                _log.error("a fault of ours", exc_info=one)
            return exit_codes.EXIT_FAULT


async def _in_group(config: TableConfig, signals: Signals, world: TableEnvironment) -> int:
    """Whatever ends it comes out in a group."""
    tells = ServeCallbacks(Notify(os.environ), ready=_say, ending=signals.patience)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(serve(config, signals.event(), tells=tells, world=world))
    return task.result()


def _world(args: argparse.Namespace) -> TableEnvironment:
    if not args.believe_clock:
        for option, name in (("--by", args.by), ("--and", args.second)):
            if name is not None:
                raise UsageProblem(option, "stands without --believe-clock", "both, or neither")
        return REAL_ENVIRONMENT
    return replace(REAL_ENVIRONMENT, believed=terminal.two_people(args))


def _say(ready: ReadyNotice) -> None:
    """Whoever started it may be gone, and the table is served all the same."""
    with suppress(OSError, ValueError, AttributeError):
        print(printable(str(ready)), flush=True)


# --- signals ----------------------------------------------------------------------------------


class Signals:
    """The first one ends the table in good order, the second one at once. To be used in a `with`,
    in the main thread."""

    STOPS: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._told = False
        self._stop: Callable[[], None] | None = None
        self._former: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Signals:
        for number in self.STOPS:
            found = signal.signal(number, self._signalled)
            self._former[number] = early_signals.before(number, found)
        return self

    def __exit__(self, *_: object) -> None:
        if signal.SIGALRM in self._former:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, former in self._former.items():
            signal.signal(number, former)

    def event(self) -> asyncio.Event:
        """Set at the first signal, also one that has come already."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def stop() -> None:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(event.set)

        self._stop = stop
        if self._told:
            event.set()
        return event

    def patience(self) -> None:
        """From now on it has so long to end; who says so again gives it no more."""
        if signal.SIGALRM in self._former:
            return
        self._former[signal.SIGALRM] = signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, STOP_WITHIN)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._told:
            _end(_AT_ONCE, exit_codes.EXIT_AT_ONCE)
        self._told = True
        self.patience()
        if self._stop is not None:
            self._stop()


def _late(number: int, frame: FrameType | None) -> None:
    _end(_LATE, exit_codes.EXIT_RECORD)


def _end(words: bytes, code: int) -> NoReturn:
    """Without a word to anybody in here: what hangs may be anywhere."""
    with suppress(OSError, ValueError, AttributeError):
        if takes(sys.stderr):
            os.write(sys.stderr.fileno(), words)
    os._exit(code)
