"""From a record that is kept to an event that someone may use: in order, each once.

The table has one bounded queue. While it is full, what is kept already waits here, and so few that
the device, which is asked to wait, has soon sent all that it may. Records of a device that does not
wait are not kept before there is room for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from drivers.devices import DeviceEvent
from drivers.session import Come
from firmware_protocol.messages.limits import WINDOW

MOST_HANDED: Final = 4 * WINDOW
"""Kept records that wait for room in the queue. A device that was asked to wait may send a window
more, and once more each time when it comes back."""


class Handing:
    """The records of one device on their way from the keeper to the table."""

    def __init__(
        self,
        events: asyncio.Queue[DeviceEvent],
        *,
        typed: Callable[[Come], DeviceEvent],
        full: Callable[[], None],
        room: Callable[[], None],
    ) -> None:
        """`full` is told when a record has to wait, `room` when there is room again."""
        self._events = events
        self._typed = typed
        self._full = full
        self._has_room = room
        self._waiting: deque[Come] = deque()
        self._some = asyncio.Event()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def room(self) -> int:
        """How many more may be handed out."""
        return MOST_HANDED - len(self._waiting)

    def hand(self, come: Come) -> None:
        """Hand this out, now or in its turn."""
        if not self._waiting and not self._events.full():
            self._events.put_nowait(self._typed(come))
            return
        if not self.room():
            raise OverflowError(f"{MOST_HANDED} records wait to be handed out already")
        self._waiting.append(come)
        self._some.set()
        self._full()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._some.wait()
            # It stays in front of the others while it waits, so that none overtakes it.
            await self._events.put(self._typed(self._waiting[0]))
            self._waiting.popleft()
            if not self._waiting:
                self._some.clear()
            self._has_room()
