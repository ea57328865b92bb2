"""A supervised device for the bench: the real way of a record, with a keeper that costs nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import logging as log_lines
from drivers.devices.driver import Driver
from drivers.devices.events import DeviceEvent
from drivers.devices.shoe import Shoe
from drivers.devices.shuffler import Shuffler
from drivers.devices.station import Station
from drivers.session.adoption import NothingHeld
from drivers.session.events import AnyHappening, Held
from drivers.session.lookup import Wanted
from drivers.session.record_store import Adoption
from drivers.session.supervisor import Supervisor
from firmware_protocol.host.cursor import NO_CURSOR, Cursor
from firmware_protocol.messages.enums import DeviceClass, Verdict
from firmware_protocol.tablelink.fingerprints import public_bytes
from firmware_protocol.tablelink.plaintext import EventRecord

OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC: Final = public_bytes(OWN)
_PATIENCE: Final = 20.0
_DRIVERS: Final[dict[DeviceClass, Callable[[Supervisor], Driver]]] = {
    DeviceClass.SHOE: Shoe,
    DeviceClass.SHUFFLER: Shuffler,
    DeviceClass.STATION: Station,
}


class Memory:
    """A Keeper whose disk costs nothing: what is measured is the way."""

    def __init__(self) -> None:
        self.kept = NO_CURSOR
        self.count = 0

    def cursor(self) -> Cursor:
        return self.kept

    def recent(self) -> Mapping[int, bytes]:
        return MappingProxyType({})

    async def keep(self, records: Sequence[EventRecord]) -> None:
        last = records[-1]
        self.kept = Cursor(last.epoch, last.seq, last.chain)
        self.count += len(records)

    async def adopt(self, adoption: Adoption) -> None:
        self.kept = adoption.cursor or self.kept


class Host:
    """One supervised device, for as long as the bench wants it."""

    def __init__(self, wanted: Wanted, keeper: Memory) -> None:
        self.keeper = keeper
        self._events: asyncio.Queue[DeviceEvent] = asyncio.Queue(256)
        self._stands = asyncio.Event()
        self._new = asyncio.Event()
        self.supervisor = Supervisor(
            wanted, self.keeper, own=lambda: OWN, events=self._events, tell=self._tell
        )
        self.driver = _DRIVERS[wanted.device_class](self.supervisor)

    def _tell(self, happening: AnyHappening) -> None:
        self._stands.set()
        if isinstance(happening, Held) and happening.verdict is Verdict.NEW_EPOCH:
            self._new.set()

    async def until(self, good: Callable[[Supervisor], object]) -> None:
        async with asyncio.timeout(_PATIENCE):
            while not good(self.supervisor):
                self._stands.clear()
                await self._stands.wait()

    async def ready(self) -> None:
        async with asyncio.timeout(_PATIENCE):
            await self.supervisor.ready()

    async def adopt(self) -> None:
        """A new device's ring is adopted, as two people would."""
        while True:
            await self._new.wait()
            self._new.clear()
            with suppress(NothingHeld):  # it has gone meanwhile, and is told of when it is back
                await self.supervisor.adopt(("first", "second"))

    async def drain(self) -> None:
        while True:
            await self._events.get()


@asynccontextmanager
async def hosted(wanted: Wanted, keeper: Memory | None = None) -> AsyncIterator[Host]:
    log_lines.to_stderr(logging.ERROR)
    host = Host(wanted, keeper or Memory())
    works = (host.supervisor.run(), host.drain(), host.adopt())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield host
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
