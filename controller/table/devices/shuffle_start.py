"""Start of a shuffle, the one output that is not a setting.

START is sent once for each time that people ask for it, and never retried automatically. The
shuffler's event shows whether it was carried out; if that is unknown, people look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from controller.audit.format.records import CONTROLLER, RecordEntry
from drivers.devices import (
    CommandRefusedError,
    CommandUnansweredError,
    InDoubt,
    NotReady,
    ResultMissing,
)
from firmware_protocol.host import LinkBusy

_TODO: Final = "look at the shuffler, then ask for the shuffle again"
NONE_RUNS: Final = f"no shuffle runs: it has ended, or was never begun; {_TODO}"
"""After a shuffle that was not right, or a restart of the controller."""
_NOT_STARTED: Final = (CommandRefusedError, CommandUnansweredError, LinkBusy, NotReady)


class StartableShuffler(Protocol):
    """Start command of the shuffler."""

    async def start(self, decks: int, profile: int = 0) -> object: ...
    def looked(self) -> None: ...


class ShuffleStarter:
    """Starts the shuffles of one table, one at a time."""

    def __init__(self, shuffler: StartableShuffler, record: Callable[[RecordEntry], None]) -> None:
        """`record` records a fault; it must not block."""
        self._shuffler = shuffler
        self._record = record
        self._decks = 0
        self._requested = asyncio.Event()
        self.asked = False
        """People have asked for the shuffle that the table waits for, and it has no result yet."""
        self.problem = ""
        """Why the last shuffle may not have started, for people."""

    def want(self, decks: int) -> None:
        """People have asked for a shuffle."""
        self.asked = True
        self._decks = decks
        self._requested.set()

    def want_again(self, decks: int) -> None:
        """People have looked: the shuffler is not shuffling, and has to be started."""
        self._shuffler.looked()
        self.want(decks)

    def over(self) -> None:
        """No shuffle is wanted any more."""
        self.asked = False
        self._decks = 0
        self.problem = ""

    def problem_now(self, *, shuffling: bool) -> str:
        """Returns why the shuffle that the table waits for may not have started, for people; empty
        if it may. `shuffling`: the shuffler has reported its start, and not its end."""
        if self.problem or self.asked or shuffling:
            return self.problem
        return NONE_RUNS

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            decks, self._decks = self._decks, 0
            if decks:
                await self._start(decks)

    async def _start(self, decks: int) -> None:
        self.problem = ""
        try:
            await self._shuffler.start(decks)
        except _NOT_STARTED as problem:
            self._report(f"the shuffle was not started: {problem}")
        except (ResultMissing, InDoubt) as problem:
            self._report(f"nobody knows whether the shuffle was started: {problem}")

    def _report(self, problem: str) -> None:
        if self.asked:  # else the shuffle is not wanted any more
            self.problem = f"{problem}; {_TODO}"
        self._record(RecordEntry("fault", CONTROLLER, {"what": "shuffle", "detail": problem}))
