"""Surveillance looks at the table: that stands in the record before anything is shown.

Who watches a stream looks once; who asks again and again, once a minute at each screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal
from weakref import WeakKeyDictionary

from controller.api.contract.errors import Problem
from controller.api.service.context import ServedTable
from controller.api.service.screens import ScreenSession
from controller.api.service.sign_in import signed_in, told_of_the_record
from controller.audit.format.records import RecordEntry, record_actor
from controller.people import SignInSession

INTERVAL: Final = 60.0
"""Seconds for which a look at a screen stands for all others there."""
RECORD_TIMEOUT: Final = 10.0
"""Seconds for it to be recorded."""
LOOKS: Final = "looks"


class SurveillanceLog:
    """Those at one table."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        """`clock`: seconds that never go back."""
        self._served = served
        self._clock = clock
        self._last: WeakKeyDictionary[ScreenSession, tuple[str, float]] = WeakKeyDictionary()
        """Whose badge the last one at a screen was, and when."""
        self._turns: WeakKeyDictionary[ScreenSession, asyncio.Lock] = WeakKeyDictionary()
        """At each screen whoever asks first has it recorded, and all others there wait for that."""

    async def record_look(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        """Somebody is about to be shown something: on the disk on return, where surveillance is
        signed in there. Nobody else waits for it. Problem where it cannot be recorded, or not in
        time: then they are shown nothing."""
        if self._due(screen) is None:
            return
        try:
            async with asyncio.timeout(RECORD_TIMEOUT):
                async with self._turns.setdefault(screen, asyncio.Lock()):
                    await self._recorded(screen, at)
        except TimeoutError:
            what = f"nothing was recorded within {RECORD_TIMEOUT:g} s: nothing is shown without it"
            raise Problem(503, "not_recorded", what, wait=1) from None

    async def _recorded(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        session = self._due(screen)
        if session is None:
            return
        data = {"what": LOOKS, "badge": session.badge, "screen": screen.name, "at": at}
        with told_of_the_record():
            await self._served.table.record(
                RecordEntry("person", record_actor(session.actor), data)
            )
        self._last[screen] = (session.badge, self._clock())

    def _due(self, screen: ScreenSession) -> SignInSession | None:
        """Whose look is to be recorded."""
        session = signed_in(self._served, screen, "surveillance")
        if session is None:
            return None
        last = self._last.get(screen)
        due = last is None or last[0] != session.badge or self._clock() - last[1] >= INTERVAL
        return session if due else None
