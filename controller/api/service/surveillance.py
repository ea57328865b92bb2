"""Records that surveillance looks at the table, before anything is shown.

Each stream is one look. Repeated requests of one screen are recorded once a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal
from weakref import WeakKeyDictionary

from controller.api.contract.errors import Problem
from controller.api.service.context import ServedTable, table_problems
from controller.api.service.screens import ScreenSession
from controller.audit.format.records import RecordEntry
from controller.audit.replay import record_actor
from controller.people import SignInSession

INTERVAL: Final = 60.0
"""Seconds for which one recorded look covers all others at the same screen."""
RECORD_TIMEOUT: Final = 10.0
"""Seconds for a look to be recorded."""
LOOKS: Final = "looks"


class SurveillanceLog:
    """The looks at one table."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._served = served
        self._clock = clock
        self._last: WeakKeyDictionary[ScreenSession, tuple[str, float]] = WeakKeyDictionary()
        """Badge and time of the last recorded look, by screen."""
        self._locks: WeakKeyDictionary[ScreenSession, asyncio.Lock] = WeakKeyDictionary()
        """One request of a screen records its look; concurrent ones wait for it."""

    async def record_look(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        """Record the look durably if surveillance is signed in at the screen and a record is due.

        Raises Problem if it cannot be recorded within RECORD_TIMEOUT: then nothing may be shown."""
        if self._due(screen) is None:
            return
        try:
            async with asyncio.timeout(RECORD_TIMEOUT):
                async with self._locks.setdefault(screen, asyncio.Lock()):
                    await self._record(screen, at)
        except TimeoutError:
            raise Problem(
                503,
                "not_recorded",
                f"nothing was recorded within {RECORD_TIMEOUT:g} s: nothing is shown without it",
                wait=1,
            ) from None

    async def _record(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        session = self._due(screen)
        if session is None:
            return
        data = {"what": LOOKS, "badge": session.badge, "screen": screen.name, "at": at}
        entry = RecordEntry("person", record_actor(session.actor), data)
        with table_problems():
            await self._served.table.record(entry)
        self._last[screen] = (session.badge, self._clock())

    def _due(self, screen: ScreenSession) -> SignInSession | None:
        """Return the session whose look is to be recorded, if any."""
        session = screen.signed_in(self._served.desk, "surveillance")
        if session is None:
            return None
        last = self._last.get(screen)
        due = last is None or last[0] != session.badge or self._clock() - last[1] >= INTERVAL
        return session if due else None
