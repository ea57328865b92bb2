"""Runs `holecard serve`: one table, in the foreground, until a signal stops it."""

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

from controller import early_signals
from controller.audit.errors import RecordProblem
from controller.config import TableConfig, load_table
from controller.daemon.cli import STOP_WITHIN
from controller.daemon.logging import to_stderr
from controller.daemon.process_memory import check_user, protect_memory
from controller.daemon.serve import ReadyNotice, ServeCallbacks, serve
from controller.daemon.watchdog import Notify
from controller.errors import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_OUTPUT, UsageProblem, printable
from controller.table.loop import REAL_ENVIRONMENT, TableEnvironment
from controller.terminal import PromptCancelled, two_people
from drivers.logging import is_writable

_LATE: Final = b"holecard: it did not end in time; the next start continues where the record ends\n"
_AT_ONCE: Final = b"holecard: ended at once; the next start continues where the record ends\n"

_log: Final = structlog.get_logger("daemon")


def run(args: argparse.Namespace) -> int:
    to_stderr()
    config = load_table(args.config)
    if not args.allow_root:
        check_user(config)
    try:
        world = _world(args)
    except PromptCancelled:
        raise UsageProblem("--by", "no name was entered", "--by NAME --and NAME") from None
    if not args.debuggable:
        protect_memory()  # before any key is read
    with Signals() as signals:  # until here `early_signals` handles them: nothing is open
        try:
            return asyncio.run(_in_group(config, signals, world))
        except ExceptionGroup as group:
            problem = reportable(group)
            if problem is not None:
                raise problem from None
            for one in leaves(group):
                _log.error("a fault of ours", exc_info=one)
            return EXIT_BROKEN


def reportable(group: BaseExceptionGroup[BaseException]) -> UsageProblem | RecordProblem | None:
    """The error to report to the user, if all exceptions of the group are such errors."""
    found = leaves(group)
    theirs = [one for one in found if isinstance(one, UsageProblem | RecordProblem)]
    return theirs[0] if theirs and len(theirs) == len(found) else None


def leaves(problem: BaseException) -> list[BaseException]:
    """All exceptions of a group, in order."""
    if not isinstance(problem, BaseExceptionGroup):
        return [problem]
    return [leaf for one in problem.exceptions for leaf in leaves(one)]


async def _in_group(config: TableConfig, signals: Signals, world: TableEnvironment) -> int:
    """Serve in a task group, so that every error is raised in a group."""
    callbacks = ServeCallbacks(Notify(os.environ), ready=_say, ending=signals.start_deadline)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(serve(config, signals.event(), callbacks=callbacks, world=world))
    return task.result()


def _world(args: argparse.Namespace) -> TableEnvironment:
    if not args.believe_clock:
        for option, name in (("--by", args.by), ("--and", args.second)):
            if name is not None:
                raise UsageProblem(option, "is given without --believe-clock", "both, or neither")
        return replace(REAL_ENVIRONMENT, debuggable=args.debuggable)
    return replace(REAL_ENVIRONMENT, believed=two_people(args), debuggable=args.debuggable)


def _say(ready: ReadyNotice) -> None:
    """Print the line; ignored if stdout is closed."""
    with suppress(OSError, ValueError, AttributeError):
        print(printable(str(ready)), flush=True)


# --- signals ----------------------------------------------------------------------------------


class Signals:
    """Signal handlers: the first signal shuts the table down, the second ends the process at once.

    A context manager, for the main thread.
    """

    STOPS: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._signalled_once = False
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
        """An event that is set at the first signal, also if that has come already."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def stop() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(event.set)

        self._stop = stop
        if self._signalled_once:
            event.set()
        return event

    def start_deadline(self) -> None:
        """Start the shutdown timeout, unless it runs already."""
        if signal.SIGALRM in self._former:
            return
        self._former[signal.SIGALRM] = signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, STOP_WITHIN)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._signalled_once:
            _end(_AT_ONCE, EXIT_INTERRUPTED)
        self._signalled_once = True
        self.start_deadline()
        if self._stop is not None:
            self._stop()


def _late(number: int, frame: FrameType | None) -> None:
    _end(_LATE, EXIT_OUTPUT)


def _end(words: bytes, code: int) -> NoReturn:
    """End the process without any cleanup, since any part of it may hang."""
    with suppress(OSError, ValueError, AttributeError):
        if is_writable(sys.stderr):
            os.write(sys.stderr.fileno(), words)
    os._exit(code)
