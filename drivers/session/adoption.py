"""Two people accept a device's ring as it is: kept first, and done then.

Once they have said so it goes its way, also if whoever asked does not stay to hear of it: a keeper
that is called off half-way keeps nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from drivers.devices import Trigger
from drivers.keys import two_people
from drivers.session import events as told
from drivers.session.acknowledge import Keeping, NotKept
from drivers.session.connection import Wire
from drivers.session.record_store import Adoption
from firmware_protocol.host import HostLink, RingHeld


class NothingHeld(Exception):
    """adopt() where nothing waits for two people, or no longer."""


class Adopting:
    """One adoption at a time, on one wire."""

    def __init__(
        self,
        wire: Wire,
        keeping: Keeping,
        *,
        settled: Callable[[], Awaitable[None]],
        tell: Callable[..., None],
        clock: Callable[[], int],
    ) -> None:
        self._wire = wire
        self._keeping = keeping
        self._settled = settled
        self._tell = tell
        self._clock = clock
        self._doing: asyncio.Task[None] | None = None

    async def adopt(self, by: tuple[str, str], *, skip: bool) -> None:
        """See Supervisor.adopt()."""
        people = two_people(by)
        self._keeping.check()
        held, link = self._wire.held, self._wire.link
        if held is None or link is None:
            raise NothingHeld(f"the device is {self._wire.state.value}: {self._wire.why}")
        if self._doing is not None and not self._doing.done():
            raise NothingHeld("two people have just adopted it")
        doing = self._doing = asyncio.create_task(
            self._do(held, link, people, skip=skip), name=f"{self._wire.wanted.serial}: adopting"
        )
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling() or not doing.cancelled():
                raise  # whoever asked gives up waiting
            raise NotKept(OSError("the host has stopped meanwhile")) from None

    async def end(self) -> None:
        """The host stops: what is not done by now is not."""
        if self._doing is not None:
            self._doing.cancel()
            await asyncio.wait((self._doing,))

    async def _do(
        self, held: RingHeld, link: HostLink, people: tuple[str, str], *, skip: bool
    ) -> None:
        await self._settled()
        self._keeping.check()
        if self._has_gone(held, link):
            raise NothingHeld(_GONE)
        await self._keeping.adopt(
            Adoption(
                held.verdict,
                link.cursor,
                held.epoch,
                held.oldest,
                held.head,
                held.chain,
                held.head + 1 if skip else held.oldest,
                people,
            )
        )
        if self._has_gone(held, link):
            # It is kept and not done. The keeper may stand elsewhere than the link by now, so the
            # next link begins where the keeper stands.
            self._wire.on(Trigger.ADOPTED_LATE, _GONE)
            self._wire.part()
            self._wire.drop_link()
            self._keeping.drop()
            raise NothingHeld(_GONE)
        now = self._clock()
        link.adopt(now, skip=skip)
        self._tell(told.Adopted, now, held.verdict, held.epoch, held.oldest, held.head, people)
        self._wire.adopted()

    def _has_gone(self, held: RingHeld, link: HostLink) -> bool:
        return self._wire.held != held or self._wire.link is not link


_GONE = "the device went away meanwhile; it begins anew from what is kept"
