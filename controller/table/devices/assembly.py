"""Devices of a table, each with its supervisor, record store and link state.

After records could not be stored, the record is tried again while the disk is full, and devices
whose records were dropped resume at the stored position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, Protocol

import structlog
from msgspec import Struct
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

from controller.table.devices.links import DeviceLink
from controller.table.devices.outputs import DeviceOutputs, ShuffleStarter
from controller.table.loop import (
    DeviceConfig,
    DeviceRecordStore,
    TableEnvironment,
    TableLoop,
    TableParts,
)
from controller.table.restart import RestoredTable
from drivers.devices import Driver, LinkState, ShoeDriver, ShufflerDriver, StationDriver
from drivers.session import Backoff, StoreFailed, Supervisor

REACHABLE: Final = (LinkState.READY, LinkState.UNKEPT)
"""States in which a device can be made safe."""


class SupervisedDevice(Struct, frozen=True):
    """One device with its supervisor, record store and link state."""

    config: DeviceConfig
    supervisor: Supervisor
    store: DeviceRecordStore
    link: DeviceLink


class TableDevices:
    """All devices of one table."""

    def __init__(
        self,
        parts: TableParts,
        world: TableEnvironment,
        table: TableLoop,
        found: RestoredTable,
        *,
        on_store_failed: Callable[[], None],
        stalled_until: Callable[[], float],
    ) -> None:
        """`on_store_failed` is called when a record of a device could not be stored.
        `stalled_until` returns the loop time at which the last stall of this process ended."""
        self._world = world
        self._parts = parts
        self._table = table
        self._on_store_failed = on_store_failed
        self._stalled_until = stalled_until
        self.outputs: DeviceOutputs
        self.supervised = {one.serial: self._serve(one, found) for one in parts.devices}
        self.shoe = self._only_shoe()
        self.outputs = DeviceOutputs((self.shoe_serial, self.shoe), self._stations())
        shuffler = self._shuffler()
        self.shuffle_starter = None if shuffler is None else ShuffleStarter(shuffler, table.later)

    def _serve(self, one: DeviceConfig, found: RestoredTable) -> SupervisedDevice:
        world, serial = self._world, one.serial
        known = found.known[serial]
        store = DeviceRecordStore(self._table, one.device, serial, found.positions[serial])
        link = DeviceLink(
            self._table,
            one.device,
            serial,
            on_back=self._device_back,
            on_store_failed=self._on_store_failed,
            stalled_until=self._stalled_until,
        )
        supervisor = Supervisor(
            replace(one.wanted, firmware=known.firmware, boot=known.boot),
            store,
            own=self._parts.own,
            on_happening=link.on_happening,
            find=world.find(),
            opener=world.opener,
            clock=world.clock,
        )
        link.supervisor = supervisor
        return SupervisedDevice(one, supervisor, store, link)

    def _device_back(self, serial: str) -> None:
        self.outputs.back(serial)  # the outputs are made after the links

    @property
    def _drivers(self) -> list[Driver]:
        return [one.supervisor.driver for one in self.supervised.values()]

    def _only_shoe(self) -> ShoeDriver:
        """Raises ValueError unless the table has exactly one shoe."""
        found = [driver for driver in self._drivers if isinstance(driver, ShoeDriver)]
        if len(found) != 1:
            raise ValueError(f"a table has one shoe, not {len(found)}")
        return found[0]

    def _shuffler(self) -> ShufflerDriver | None:
        """Raises ValueError if the table has more than one shuffler."""
        found = [driver for driver in self._drivers if isinstance(driver, ShufflerDriver)]
        if len(found) > 1:
            raise ValueError(f"a table has one shuffler at most, not {len(found)}")
        return found[0] if found else None

    def _stations(self) -> dict[int, tuple[str, StationDriver]]:
        """Stations with their serial numbers, by seat."""
        return {
            seat: (serial, one.supervisor.driver)
            for serial, one in self.supervised.items()
            for seat in one.config.seats
            if isinstance(one.supervisor.driver, StationDriver)
        }

    @property
    def shoe_serial(self) -> str:
        return next(
            serial for serial, one in self.supervised.items() if one.config.device == "shoe"
        )

    @property
    def supervisors(self) -> list[Supervisor]:
        return [one.supervisor for one in self.supervised.values()]

    @property
    def reachable(self) -> frozenset[str]:
        """Serial numbers of the devices that can be made safe now. The others are in their safe
        state already."""
        return frozenset(
            serial for serial, one in self.supervised.items() if one.supervisor.state in REACHABLE
        )

    async def caught_up(self) -> None:
        """Returns when all that shoe and shuffler had in their logs when they were resumed is
        recorded. Old presses of a station do not count."""
        for one in self.supervised.values():
            if one.config.device != "station":
                await one.link.caught_up(one.store)

    def work(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Coroutines to run for the devices, with names."""
        for serial, one in self.supervised.items():
            yield f"device {serial}", _of(serial, one.supervisor.run)
            yield f"link {serial}", _of(serial, one.link.run)


async def _of(serial: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Bind the device's serial number to all log lines."""
    with bound_contextvars(device=serial):
        await run()


RETRY_FIRST: Final = 1.0
"""Seconds until the first retry."""
RETRY_MAX: Final = 30.0
"""Maximum seconds between two retries. The delay does not grow while the record itself cannot be
written."""

_log: Final = structlog.get_logger("table.mending")


class StoringDevice(Protocol):
    """The store failure of a supervisor."""

    @property
    def failure(self) -> Exception | None: ...
    def recovered(self) -> None: ...


class StoreRetry:
    """The retries of one table."""

    def __init__(self, table: TableLoop) -> None:
        self._table = table
        self._devices: list[StoringDevice] = []
        self._failed = asyncio.Event()

    def watch(self, devices: Sequence[StoringDevice]) -> None:
        self._devices = list(devices)

    def failed(self) -> None:
        """Something could not be stored."""
        self._failed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        backoff = Backoff(RETRY_FIRST, RETRY_MAX)
        delay = backoff.next_delay()
        while True:
            await self._failed.wait()
            self._failed.clear()
            while self._is_pending():
                await asyncio.sleep(delay)
                stopped = self._table.stopped is not None
                if stopped and not await self._try_record():
                    continue
                if self._table.append_seconds > RETRY_FIRST:
                    continue  # it stalls: a device that fails now would wait longer each time
                self._recover()
                delay = backoff.next_delay()
            backoff.reset()
            delay = backoff.next_delay()

    def _is_pending(self) -> bool:
        if self._table.stopped is not None:
            return self._table.can_resume
        return any(device.failure is not None for device in self._devices)

    async def _try_record(self) -> bool:
        text = f"recorded again; nothing could be recorded since: {self._table.stopped}"
        return await self._table.try_again(text)

    def _recover(self) -> None:
        for device in self._devices:
            if device.failure is None:
                continue
            try:
                device.recovered()
            except StoreFailed as problem:
                _log.info("not mended yet", why=str(problem))
