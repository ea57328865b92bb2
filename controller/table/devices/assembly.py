"""The devices of a table, each with what serves it: supervisor, driver, keeper and link."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

from controller.table.devices.links import Link
from controller.table.devices.outputs import Outlets
from controller.table.devices.shuffle_start import Starting
from controller.table.loop import (
    DeviceConfig,
    DeviceRecordStore,
    TableEnvironment,
    TableLoop,
    TableParts,
)
from controller.table.restart import RestoredTable
from drivers.devices import Driver, Shoe, Shuffler, State, Station
from drivers.session import Supervisor

TAKES: Final = (State.READY, State.UNKEPT)
"""A device that stands so can be made safe."""


class Served(Struct, frozen=True):
    """A device, and what serves it."""

    fitted: DeviceConfig
    supervisor: Supervisor
    store: DeviceRecordStore
    link: Link


class Fittings:
    """All devices of one table."""

    def __init__(
        self,
        parts: TableParts,
        world: TableEnvironment,
        table: TableLoop,
        found: RestoredTable,
        *,
        unkept: Callable[[], None],
    ) -> None:
        """`unkept` is told when something that a device told cannot be kept."""
        self._world = world
        self._parts = parts
        self._table = table
        self._unkept = unkept
        self.served = {one.serial: self._serve(one, found) for one in parts.devices}
        self.shoe = self._only_shoe()
        self.outlets = Outlets((self.shoe_serial, self.shoe), self._stations())
        shuffler = self._shuffler()
        self.starting = None if shuffler is None else Starting(shuffler, table.later)

    def _serve(self, one: DeviceConfig, found: RestoredTable) -> Served:
        world, serial = self._world, one.serial
        known = found.known[serial]
        store = DeviceRecordStore(self._table, one.device, serial, found.stood[serial])
        link = Link(self._table, one.device, serial, back=self._is_back, unkept=self._unkept)
        supervisor = Supervisor(
            replace(one.wanted, firmware=known.firmware, boot=known.boot),
            store,
            own=self._parts.own,
            on_happening=link.tell,
            find=world.find(),
            opener=world.opener,
            clock=world.clock,
        )
        link.supervisor = supervisor
        return Served(one, supervisor, store, link)

    @property
    def _drivers(self) -> list[Driver]:
        return [one.supervisor.driver for one in self.served.values()]

    def _only_shoe(self) -> Shoe:
        found = [driver for driver in self._drivers if isinstance(driver, Shoe)]
        if len(found) != 1:
            raise ValueError(f"a table has one shoe, not {len(found)}")
        return found[0]

    def _shuffler(self) -> Shuffler | None:
        found = [driver for driver in self._drivers if isinstance(driver, Shuffler)]
        if len(found) > 1:
            raise ValueError(f"a table has one shuffler at most, not {len(found)}")
        return found[0] if found else None

    def _stations(self) -> dict[int, tuple[str, Station]]:
        """By seat."""
        return {
            seat: (serial, one.supervisor.driver)
            for serial, one in self.served.items()
            for seat in one.fitted.seats
            if isinstance(one.supervisor.driver, Station)
        }

    def _is_back(self, serial: str) -> None:
        """A device takes commands again."""
        self.outlets.back(serial)

    # --- what others ask ------------------------------------------------------------------

    @property
    def shoe_serial(self) -> str:
        return next(serial for serial, one in self.served.items() if one.fitted.device == "shoe")

    @property
    def supervisors(self) -> list[Supervisor]:
        return [one.supervisor for one in self.served.values()]

    @property
    def here(self) -> frozenset[str]:
        """Those that can be made safe now; the others are safe by themselves."""
        return frozenset(
            serial for serial, one in self.served.items() if one.supervisor.state in TAKES
        )

    async def caught_up(self) -> None:
        """Returns when shoe and shuffler have told what they had to tell when they came back. Of a
        station nothing of that counts any more."""
        for one in self.served.values():
            if one.fitted.device != "station":
                await one.link.caught_up(one.store)

    def work(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """What runs for each device, with a name."""
        for serial, one in self.served.items():
            yield f"device {serial}", _of(serial, one.supervisor.run)
            yield f"link {serial}", _of(serial, one.link.run)


async def _of(serial: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Lines for engineers say whose they are."""
    with bound_contextvars(device=serial):
        await run()
