"""The one command that is no wish: START of a shuffle. It is sent once for each time that people
ask for it, and never again by itself. Whether it was carried out the shuffler's event tells; where
nobody knows, people look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from controller.audit.format.records import CONTROLLER, RecordEntry
from drivers.devices import CommandRefused, CommandUnanswered, InDoubt, NotReady, ResultMissing
from firmware_protocol.host import LinkBusy

_TODO: Final = "look at the shuffler, then ask for the shuffle again"
NONE_RUNS: Final = f"no shuffle runs: it has ended, or was never begun; {_TODO}"
"""The floor plays on after one that was not right, or the controller was started meanwhile."""
_NOT_STARTED: Final = (CommandRefused, CommandUnanswered, LinkBusy, NotReady)


class Startable(Protocol):
    """A shuffler."""

    async def start(self, decks: int, profile: int = 0) -> object: ...
    def looked(self) -> None: ...


class Starting:
    """Starts the shuffles of one table, one at a time."""

    def __init__(self, shuffler: Startable, record: Callable[[RecordEntry], None]) -> None:
        """`record` takes what stands in the way; it must not wait."""
        self._shuffler = shuffler
        self._record = record
        self._wanted = 0
        self.asked = False
        """People have asked for the shuffle that is waited for, and nothing has come of it yet."""
        self._some = asyncio.Event()
        self.problem = ""
        """Why the last one may not have begun, for people."""

    def want(self, decks: int) -> None:
        """People have asked for it."""
        self.asked = True
        self._wanted = decks
        self._some.set()

    def want_again(self, decks: int) -> None:
        """People have looked at the shuffler: it does not shuffle, and shall."""
        self._shuffler.looked()
        self.want(decks)

    def over(self) -> None:
        """No shuffle is wanted any more."""
        self.asked = False
        self._wanted = 0
        self.problem = ""

    def stands(self, *, shuffling: bool) -> str:
        """Why the shuffle that is waited for may not have begun, for people. `shuffling`: the
        shuffler has told that it has begun, and not that it has ended."""
        if self.problem or self.asked or shuffling:
            return self.problem
        return NONE_RUNS

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._some.wait()
            self._some.clear()
            decks, self._wanted = self._wanted, 0
            if decks:
                await self._start(decks)

    async def _start(self, decks: int) -> None:
        self.problem = ""
        try:
            await self._shuffler.start(decks)
        except _NOT_STARTED as problem:
            self._tell(f"the shuffle was not started: {problem}")
        except (ResultMissing, InDoubt) as problem:
            self._tell(f"nobody knows whether the shuffle was started: {problem}")

    def _tell(self, problem: str) -> None:
        if self.asked:  # what is over meanwhile is in nobody's way
            self.problem = f"{problem}; {_TODO}"
        self._record(RecordEntry("fault", CONTROLLER, {"what": "shuffle", "detail": problem}))
